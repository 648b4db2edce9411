#pragma once
// Debug registers: breakpoints on instructions, data and ports, general detect, and the traps that
// are taken between instructions (Intel SDM vol. 3, 17.2 and 17.3).

#include <array>
#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// Holds DR0 to DR7, and the breakpoints that the instruction in flight has met. Nothing here runs
/// while DR7 enables no breakpoint. Breakpoints on instructions throw; all others are pending until
/// the trap is delivered when the instruction retires (ExceptionDelivery::take_debug_trap()).
class DebugUnit {
 public:
  /// All must outlive the object.
  explicit DebugUnit(CpuContext& cpu) : cpu_(cpu) {}

  /// Bits of DR6.
  static constexpr std::uint32_t kStep = 1u << 14, kTaskSwitch = 1u << 15;

  const std::array<std::uint64_t, 8>& registers() const { return dr_; }
  /// Takes DR0 to DR7.
  void load(const std::array<std::uint64_t, 8>& registers) {
    dr_ = registers;
    find_breakpoints();
  }
  std::uint32_t value(unsigned number) const { return static_cast<std::uint32_t>(dr_[number]); }
  /// find_breakpoints() is due after a change of DR7.
  void set(unsigned number, std::uint32_t value) { dr_[number] = value; }
  /// SDM vol. 3, 17.2.4: a task switch clears the local enable flags.
  void drop_local_breakpoints();

  bool breaks_on_code() const { return breaks_on_code_; }
  bool breaks_on_data() const { return breaks_on_data_; }
  bool breaks_on_ports() const { return breaks_on_ports_; }
  /// Code must be reported instruction by instruction.
  bool watches_code() const { return breaks_on_code_ || breaks_on_data_ || pending_ != 0; }

  /// Bits for DR6 of a trap that is due.
  std::uint32_t pending() const { return pending_; }
  /// These and no others are.
  void set_pending(std::uint32_t bits) { pending_ = bits; }
  /// These are too.
  void add_pending(std::uint32_t bits) { pending_ |= bits; }
  /// The pending bits are in DR6, and no longer pending.
  void take_pending() {
    tell(pending_);
    pending_ = 0;
  }
  /// Instruction number `instruction` comes after a load of SS: traps wait until it has completed.
  void shade(std::uint64_t instruction) { stack_shadow_ = instruction; }
  /// No instruction does.
  void shade_nothing() { stack_shadow_ = kNever; }

  /// After DR7 changed.
  void find_breakpoints();
  /// Before the instruction at `linear` is looked at. RF holds its breakpoints off, and so does a
  /// load of SS just before it (SDM vol. 3, 6.8.3).
  void check_code(LinearAddr linear);
  /// Notes the breakpoints that an access of the instruction in flight meets.
  void check_data(const DataAccess& a);
  /// The same of `size` ports.
  void check_port(std::uint16_t port, std::uint32_t size);
  /// The handler of #DB may use the debug registers.
  void clear_general_detect();
  /// The instruction at the current position comes after a load of SS.
  bool in_stack_shadow() const;
  /// MOV from and to a debug register, as its encoding numbers it.
  std::uint64_t read(unsigned encoded);
  void write(unsigned encoded, std::uint64_t value);

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  void tell(std::uint32_t bits);
  std::uint32_t met_breakpoints(std::uint32_t access, LinearAddr address, std::uint32_t size) const;
  bool meets(LinearAddr address, std::uint32_t size, LinearAddr watched, std::uint32_t bytes) const;
  void check_general_detect();
  unsigned number_of(unsigned encoded) const;

  CpuContext& cpu_;

  std::array<std::uint64_t, 8> dr_{};
  std::uint32_t pending_ = 0;
  bool breaks_on_code_ = false, breaks_on_data_ = false, breaks_on_ports_ = false;
  std::uint64_t stack_shadow_ = kNever;  ///< the instruction after a load of SS
};

}  // namespace citcat
