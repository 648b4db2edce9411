#include "monitor/delivery/way_in.h"

#include "monitor/log/exceptions.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kTaskGate = 5, kInterrupt16 = 6, kTrap16 = 7, kInterrupt32 = 14, kTrap32 = 15;
constexpr std::uint32_t kInTable = 2;  // of an error code: the selector is a vector
// A task segment of long mode (Intel SDM vol. 3, figure 7-11).
constexpr unsigned kStacksOfLevels = 4, kInterruptStacks = 0x24;
constexpr std::uint32_t kLong = 0x200000, kBig = 0x400000;  // of a descriptor's upper half

bool is_null(unsigned selector) { return (selector & 0xfffc) == 0; }

bool is_canonical(std::uint64_t linear) {
  const auto upper = static_cast<std::int64_t>(linear) >> 47;
  return upper == 0 || upper == -1;
}

bool contributes(unsigned vector) {
  return vector == 0 || (vector >= kTaskSegment && vector <= kProtection);
}

std::uint64_t mask_of_stack(std::uint32_t high) { return (high & kBig) != 0 ? 0xffffffff : 0xffff; }

}  // namespace

Refusal combined(unsigned first, const Refusal& second) {
  const bool twice =
      (contributes(first) && contributes(second.vector)) ||
      (first == kPageFault && (contributes(second.vector) || second.vector == kPageFault));
  return twice ? Refusal{kDoubleFault, 0} : second;
}

std::optional<Refusal> WayIn::go() {
  if (const auto refusal = read_gate()) return refusal;
  if (is_task_gate()) return std::nullopt;
  if (const auto refusal = read_code()) return refusal;
  return long_mode_ ? read_long_stack() : read_stack();
}

std::optional<Refusal> WayIn::read_gate() {
  const unsigned bytes = long_mode_ ? 16 : 8;
  const Refusal general = refused(kProtection, event_.vector << 3 | kInTable);
  if (event_.vector * bytes + bytes - 1 > event_.before.idt_limit) return general;
  gate.linear = event_.before.idt_base + bytes * event_.vector;
  const auto dword = [&](unsigned at) {
    return static_cast<std::uint32_t>(memory_.read_for_processor(gate.linear + at, 4));
  };
  gate.low = dword(0);
  gate.high = dword(4);
  if (long_mode_) {
    upper_dword_ = dword(8);
    (void)dword(12);
  }
  const unsigned type = gate.type();
  const bool narrow = type == kInterrupt16 || type == kTrap16 || type == kTaskGate;
  if (type != kInterrupt32 && type != kTrap32 && (long_mode_ || !narrow)) return general;
  if (event_.software && gate.dpl() < event_.cpl) return general;
  if (!gate.present()) return refused(kNotPresent, event_.vector << 3 | kInTable);
  return std::nullopt;
}

/// Reads an entry of the GDT or LDT. False where the table ends before it.
bool WayIn::read_entry(unsigned selector, TableEntry& entry) {
  const LoggedState& state = event_.before;
  const bool local = (selector & 4) != 0;
  const std::uint32_t at = selector & 0xfff8;
  if (at + 7 > (local ? state.ldtr.limit : state.gdt_limit)) return false;
  entry.linear = (local ? state.ldtr.base : state.gdt_base) + at;
  entry.low = static_cast<std::uint32_t>(memory_.read_for_processor(entry.linear, 4));
  entry.high = static_cast<std::uint32_t>(memory_.read_for_processor(entry.linear + 4, 4));
  return true;
}

std::optional<Refusal> WayIn::read_code() {
  const unsigned selector = gate.selector();
  if (is_null(selector)) return refused(kProtection, 0);
  const Refusal general = refused(kProtection, selector & 0xfffc);
  if (!read_entry(selector, code)) return general;
  if (!code.is_code() || code.dpl() > event_.cpl) return general;
  if (long_mode_ && (code.high & (kLong | kBig)) != kLong) return general;
  if (!code.present()) return refused(kNotPresent, selector & 0xfffc);
  if (from_virtual8086() && (code.conforming() || code.dpl() != 0)) return general;
  inner = !code.conforming() && code.dpl() < event_.cpl;
  if (long_mode_) return std::nullopt;
  const std::uint32_t offset = (gate.low & 0xffff) | (is_wide() ? gate.high & 0xffff0000 : 0);
  if (offset > code.limit()) return refused(kProtection, 0);
  return std::nullopt;
}

/// The stack in use, or that of the inner level, which the task segment names; its form of 16 bits
/// is half as wide.
std::optional<Refusal> WayIn::read_stack() {
  const LoggedState& state = event_.before;
  stack_base = state.segment[2].base;
  top = static_cast<std::uint32_t>(state.gpr[4]);
  mask = mask_of_stack(state.segment[2].flags);
  if (!inner) return std::nullopt;
  const bool wide = (state.tr.flags & 0x800) != 0;
  const unsigned bytes = wide ? 4 : 2;
  const unsigned slot = wide ? 4 + 8 * code.dpl() : 2 + 4 * code.dpl();
  if (slot + 2 * bytes - 1 > state.tr.limit)
    return refused(kTaskSegment, state.tr.selector & 0xfffc);
  top = memory_.read_for_processor(state.tr.base + slot, bytes);
  const auto selector =
      static_cast<unsigned>(memory_.read_for_processor(state.tr.base + slot + bytes, 2));
  if (is_null(selector)) return refused(kTaskSegment, 0);
  const Refusal invalid = refused(kTaskSegment, selector & 0xfffc);
  TableEntry& entry = stack.emplace();
  if (!read_entry(selector, entry)) return invalid;
  if ((selector & 3) != code.dpl() || entry.dpl() != code.dpl() || !entry.is_writable_data())
    return invalid;
  if (!entry.present()) return refused(kStackFault, selector & 0xfffc);
  stack_base = entry.base();
  mask = mask_of_stack(entry.high);
  return std::nullopt;
}

/// The stack of the handler: one of the interrupt stack table, the inner level's, or the one in
/// use; aligned (Intel SDM vol. 3, 6.14.2 to 6.14.5).
std::optional<Refusal> WayIn::read_long_stack() {
  const LoggedState& state = event_.before;
  const unsigned interrupt_stack = gate.interrupt_stack();
  top = state.gpr[4];
  mask = ~std::uint64_t{0};
  if (interrupt_stack != 0 || inner) {
    const unsigned slot = interrupt_stack != 0 ? kInterruptStacks + 8 * (interrupt_stack - 1)
                                               : kStacksOfLevels + 8 * code.dpl();
    if (slot + 7 > state.tr.limit) return Refusal{kTaskSegment, state.tr.selector & 0xfffc};
    top = memory_.read_for_processor(task_base_ + slot, 8);
    if (!is_canonical(top)) return Refusal{kStackFault, 0};
  }
  top &= ~std::uint64_t{15};
  if (!is_canonical(std::uint64_t{upper_dword_} << 32)) return refused(kProtection, 0);
  return std::nullopt;
}

}  // namespace citcat::monitor
