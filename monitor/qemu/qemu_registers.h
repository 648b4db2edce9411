#pragma once
// The registers of the processor that QEMU emulates. The plugin interface gives the visible ones;
// cpu_dump_state prints the hidden parts.

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "monitor/qemu/qemu_plugin_api.h"
#include "monitor/state/registers.h"
#include "monitor/state/state_block.h"

namespace citcat::monitor {

class QemuRegisters final : public Registers {
 public:
  /// Those of processor `number`, which are to be had while the emulator runs it, or is told so.
  explicit QemuRegisters(unsigned number = 0) : number_(static_cast<int>(number)) {}
  /// False when this QEMU does not export what is needed.
  /// `several`: what is needed where processors take turns, too.
  bool find_functions(bool several = false);
  /// To be called on the processor's thread. False when a register is missing.
  bool find_registers();

  bool in_virtual8086() override;
  bool in_real_mode() { return (control0() & 1) == 0; }
  bool at_user_level() { return !in_real_mode() && (in_virtual8086() || (selector(1) & 3) == 3); }
  bool has_long_mode() const { return handles_[kEfer] != nullptr; }
  /// EFER.LMA
  bool in_long_mode() { return has_long_mode() && (read(kEfer) & 0x400) != 0; }
  /// The mode of the code that the segment in CS holds now.
  CodeSize code_size();
  void forget_segments() override { known_ = false; }
  std::uint16_t selector(unsigned n) override {
    return static_cast<std::uint16_t>(read(kSelectors + n));
  }
  std::uint64_t gpr(unsigned n) override { return read(n); }
  ControlRegisters control() override;
  LoggedState state() override;
  bool read_memory(std::uint64_t linear, std::span<std::uint8_t> bytes) override;
  std::optional<LongModeRegisters> long_mode_registers() override;
  /// What instructions have made of the processor's model, asked of the emulator. At the first
  /// instruction of a block; nullopt where the emulator's own state is not found there.
  std::optional<ModelFacts> model();
  /// The state as QEMU prints it.
  std::string dump();

  /// With several processors: whether the emulator runs this one now.
  bool is_current() const { return *current() == cpu_; }
  /// Has the emulator take this one for the one that it runs. Returns what it took for that before.
  void* make_current() const {
    if (current() == nullptr) return nullptr;
    return std::exchange(*current(), cpu_);
  }
  static void restore_current(void* before) {
    if (current() != nullptr) *current() = before;
  }
  /// Has the emulator go on to another processor at the end of the block that runs.
  void stop_soon() const { stop_soon_(get_cpu_(number_)); }

 private:
  using GetCpu = void* (*)(int);
  using DumpState = void (*)(void*, std::FILE*, int);
  using StopSoon = void (*)(void*);
  /// Where the emulator says, for each of its threads, which processor it runs; nullptr for one
  /// processor.
  static void** current();
  /// Places in `handles_`: general registers first, then the selectors in encoding order.
  enum : unsigned {
    kSelectors = 16,
    kIp = kSelectors + 6,
    kFlags,
    kCr0,
    kCr2,
    kCr3,
    kCr4,
    kCr8,
    kEfer,
    kFsBase,
    kGsBase,
    kKernelGsBase,
    kRegisters
  };
  static const std::array<const char*, kRegisters> kNames;

  std::uint32_t control0() { return static_cast<std::uint32_t>(read(kCr0)); }
  std::uint64_t read(unsigned place);
  std::uint64_t read_ip() override;
  void find_ip();
  std::uint64_t ip_in_memory() const {
    std::uint64_t value = 0;
    std::memcpy(&value, ip_at_, ip_bytes_);
    return value;
  }

  int number_;
  GetCpu get_cpu_ = nullptr;
  void* cpu_ = nullptr;  ///< since there is one
  DumpState dump_state_ = nullptr;
  StopSoon stop_soon_ = nullptr;
  static bool several_;
  std::array<qemu_plugin_register*, kRegisters> handles_{};
  GByteArray* buffer_ = nullptr;
  std::uint16_t known_code_ = 0;  ///< the code segment that `known_size_` is of
  CodeSize known_size_ = CodeSize::bits32;
  bool known_ = false;
  // EIP is asked for at each block. Where the emulator keeps it is found by what it holds.
  static constexpr unsigned kMostSearches = 64;
  unsigned searches_ = 0;
};

}  // namespace citcat::monitor
