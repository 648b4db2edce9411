#pragma once
// Random single instructions of 64-bit mode at ring 3: any prefixes and REX, operands in memory by
// all forms of addresses, at the ends of pages, in pages that are absent or read-only, in the lower
// 4 GiB and at the top of the lower half, and at addresses that are not canonical.

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "events/recording.h"
#include "silicon/host_processor.h"

namespace citcat::silicon {

enum class WideMode : std::uint8_t {
  integer,  ///< general registers
  vector,   ///< x87, MMX and SSE up to SSE4.2
  newer,    ///< BMI1, BMI2, LZCNT, MOVBE, ADX and FSGSBASE
};
inline constexpr WideMode kWideModes[] = {WideMode::integer, WideMode::vector, WideMode::newer};
const char* wide_mode_name(WideMode mode);

class WideGuest {
 public:
  static constexpr std::uint32_t kRam = 0x40000;         ///< what the program can reach
  static constexpr std::uint32_t kMachineRam = 0x60000;  ///< with the replay's tables behind it
  static constexpr std::uint64_t kSystem = 0xffffffff80000000;  ///< linear address of those tables
  static constexpr std::uint32_t kSystemFrames = kRam + 0x10000;  ///< their physical address
  static constexpr std::uint32_t kKernelStack = 0x6f00;           ///< of the replay, from kSystem

  explicit WideGuest(std::uint64_t seed);

  static std::vector<HostProcessor::Page> pages();
  /// Where a linear address lies, whatever the rights of its page; kRam where nowhere.
  static std::uint32_t physical(std::uint64_t linear);
  /// All memory before the instruction: kMachineRam bytes, tables included.
  const std::vector<std::uint8_t>& ram() const { return ram_; }
  /// Another random state with another instruction in memory.
  CpuState next(WideMode mode);
  /// The instruction of that state.
  const std::vector<std::uint8_t>& instruction() const { return instruction_; }
  /// This instruction in place of a random one.
  void set_instruction(std::vector<std::uint8_t> bytes) { forced_ = std::move(bytes); }

 private:
  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t one_in) { return pick(one_in) == 0; }
  std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }

  void put(std::uint32_t at, std::uint64_t value, std::uint32_t size = 8);
  void make_tables();
  std::uint64_t value_for_memory();
  std::uint64_t linear_address();
  void set_registers(CpuState& s);
  void set_floating_point(CpuState& s);
  void make_instruction(WideMode mode);
  void integer_instruction();
  void vector_instruction();
  void newer_instruction();
  void vex_instruction();
  void add_modrm(std::uint8_t modrm);
  void two_byte_instruction();

  std::mt19937_64 random_;
  std::vector<std::uint8_t> ram_;
  std::vector<std::pair<std::uint32_t, std::uint8_t>> replaced_;  ///< by the last instruction
  std::vector<std::uint8_t> instruction_, forced_;
  bool operand_ = false, repeat_ = false;  ///< prefixes of the instruction that is being made
  std::uint8_t rex_ = 0;
};

}  // namespace citcat::silicon
