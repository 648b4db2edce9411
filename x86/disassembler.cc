#include "x86/disassembler.h"

#include <Zydis/Zydis.h>

#include <optional>

#include "x86/zydis_mode.h"

namespace citcat {
namespace {

std::optional<std::string> disassemble(std::span<const std::uint8_t> bytes, std::uint64_t address,
                                       int bits) {
  const ZydisMode mode = zydis_mode(bits);
  ZydisDisassembledInstruction instruction;
  const ZyanStatus status =
      ZydisDisassembleIntel(mode.machine, address, bytes.data(), bytes.size(), &instruction);
  if (!ZYAN_SUCCESS(status) || instruction.info.length != bytes.size()) return std::nullopt;
  return instruction.text;
}

}  // namespace

std::string Disassembler::text(std::span<const std::uint8_t> bytes, std::uint64_t address) {
  const int other = bits_ == 16 ? 32 : 16;
  if (auto text = disassemble(bytes, address, bits_)) return *text;
  if (guess_) {
    if (auto text = disassemble(bytes, address, other)) {
      bits_ = other;
      return *text;
    }
  }
  return "(bad)";
}

}  // namespace citcat
