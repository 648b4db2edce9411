#include "monitor/units/local_apic.h"

#include "monitor/processor/insn.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kLocalApic = 0xfee00000, kPageBytes = 0x1000;
/// The two halves of the interrupt command register (Intel SDM vol. 3, 10.6.1).
constexpr std::uint32_t kCommandLow = 0x300, kCommandHigh = 0x310;
/// The same register as an x2APIC has it (Intel SDM vol. 3, table 10-6).
constexpr std::uint32_t kCommandMsr = 0x830;

}  // namespace

void LocalApic::note_store(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  if (address - kLocalApic >= kPageBytes) return;
  if (address - kLocalApic == kCommandHigh) destination_ = dword_of(bytes) >> 24;
  if (address - kLocalApic == kCommandLow) send(dword_of(bytes), destination_);
}

void LocalApic::note_wrmsr(std::uint32_t msr, std::uint32_t low, std::uint32_t high) {
  if (msr == kCommandMsr) send(low, high);
}

void LocalApic::send(std::uint32_t command, std::uint32_t destination) {
  const std::uint32_t details = (command >> 11 & 1) |       // logical
                                (command >> 14 & 3) << 1 |  // level, level-triggered
                                (command >> 18 & 3) << 4;   // shorthand
  sink_.message((command & 0xff) | (command >> 8 & 7) << 8 | (destination & 0xff) << 16 |
                details << 24);
}

}  // namespace citcat::monitor
