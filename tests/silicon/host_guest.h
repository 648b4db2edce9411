#pragma once
// Random single instructions at ring 3 with everything that can be met there: segments of any size
// and kind, 16- and 32-bit code and stacks, pages that are absent or read-only, the ends of all of
// these, and the end of the address space.

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "events/recording.h"
#include "silicon/host_processor.h"

namespace citcat::silicon {

enum class StepMode : std::uint8_t {
  flat32,    ///< 32-bit code and stack, segments without limits
  code16,    ///< 16-bit code and stack, segments of 64 KiB
  mixed,     ///< any segments
  floating,  ///< x87, MMX and SSE, in any segments
};
inline constexpr StepMode kStepModes[] = {StepMode::flat32, StepMode::code16, StepMode::mixed,
                                          StepMode::floating};
std::string step_mode_name(StepMode mode);

inline constexpr std::uint32_t kGuestRam = 0x40000;    ///< what the program can reach
inline constexpr std::uint32_t kMachineRam = 0x60000;  ///< with the replay's tables behind it
inline constexpr std::uint32_t kSystem = 0xe0000000;   ///< linear address of those tables
inline constexpr std::uint32_t kKernelStack = 0x6f00;  ///< of the replay, from kSystem
inline constexpr std::uint32_t kSystemFrames = kGuestRam + 0x10000;  ///< their physical address

class HostGuest {
 public:
  explicit HostGuest(std::uint64_t seed);

  static std::vector<HostProcessor::Page> pages();
  const std::vector<HostProcessor::Descriptor>& ldt() const { return ldt_; }
  /// All memory before the instruction: kMachineRam bytes, tables included.
  const std::vector<std::uint8_t>& ram() const { return ram_; }

  /// Another random state with another instruction in memory.
  CpuState next(StepMode mode);
  /// This instruction in place of a random one.
  void set_instruction(std::vector<std::uint8_t> bytes) { forced_ = std::move(bytes); }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t one_in) { return pick(one_in) == 0; }
  std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }
  std::uint32_t dword() { return static_cast<std::uint32_t>(random_()); }

  void put(std::uint32_t at, std::uint32_t value, std::uint32_t size = 4);
  void put_linear(std::uint32_t linear, std::uint8_t value);
  void make_ldt();
  HostProcessor::Descriptor random_descriptor();
  void make_tables();
  void fill_memory();
  std::uint32_t value_for_memory();
  Segment segment(std::uint16_t selector) const;
  std::uint16_t pick_selector(bool code, bool stack);
  std::uint32_t linear_address();
  std::uint32_t address_in(const Segment& segment);
  void set_segments(CpuState& s, StepMode mode);
  void set_registers(CpuState& s);
  std::vector<std::uint8_t> instruction(const CpuState& s, StepMode mode);
  std::uint8_t one_byte_opcode();
  std::uint8_t two_byte_opcode();
  void floating_instruction(std::vector<std::uint8_t>& out, bool address32);
  void add_modrm(std::vector<std::uint8_t>& out, std::uint8_t modrm, bool address32);
  void set_floating_point(CpuState& s);

  std::mt19937_64 random_;
  std::vector<HostProcessor::Descriptor> ldt_;
  std::vector<std::uint8_t> ram_;
  std::vector<std::pair<std::uint32_t, std::uint8_t>> replaced_;  ///< by the last instruction
  std::vector<std::uint8_t> forced_;
};

}  // namespace citcat::silicon
