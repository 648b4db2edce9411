#include "monitor/units/far_transfer.h"

#include <utility>

#include "monitor/log/exceptions.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kCallGate16 = 4, kCallGate32 = 12;
constexpr std::uint32_t kSegmentBytes = 0x10000;  // of 16-bit addresses

/// Task segments of 16 and 32 bits, free and busy, by the second dword of their descriptors.
bool is_task_segment(std::uint32_t high) { return (high >> 8 & 0x15) == 1; }

/// Where EFLAGS is kept in a task segment (Intel SDM vol. 3, figures 7-2 and 7-10).
std::uint64_t flags_at(const LoggedSegment& task) {
  return task.base + ((task.flags & 0x800) != 0 ? 0x24 : 0x10);
}

/// CALL to another segment, and not JMP.
bool is_far_call(const Insn& insn) {
  return insn.opcode() == 0x9a || (insn.opcode() == 0xff && insn.modrm_reg() == 3);
}

}  // namespace

void FarTransfer::clear() {
  to_virtual8086_ = false;
  task_.reset();
  gate_.reset();
  code_.reset();
}

void FarTransfer::begin(const Insn& insn) {
  level_ = cpu_.registers.selector(1) & 3;
  from_virtual8086_ = cpu_.registers.in_virtual8086();
  seen_.code.forget_segment(!cpu_.in_real_mode());
  if (insn.what.kind == InsnKind::far_return) refuse_wrapped_return(insn);
}

/// In real and in virtual-8086 mode the emulator takes CS from after the stack segment where a
/// processor takes it from its beginning (QEMU 10, target/i386/tcg/emit.c.inc, gen_RETF()).
void FarTransfer::refuse_wrapped_return(const Insn& insn) {
  if (!cpu_.in_real_mode() && !cpu_.registers.in_virtual8086()) return;
  if ((cpu_.registers.gpr(4) & (kSegmentBytes - 1)) + insn.what.operand_bytes < kSegmentBytes)
    return;
  seen_.recording.give_up(
      "a far return reads over the end of its stack segment, which this emulator gets wrong");
}

void FarTransfer::note_descriptor(std::uint64_t linear, std::uint32_t high) {
  const auto& tables = tables_.places();
  const std::uint64_t in_global = cpu_.walker.behind(linear, tables.gdt);
  const std::uint64_t in_local = cpu_.walker.behind(linear, tables.ldt);
  const bool global = in_global <= tables.gdt_limit && in_global % 8 == 4;
  const bool local = in_local <= tables.ldt_limit && in_local % 8 == 4;
  if (task_ || (!global && !local)) return;
  const TableEntry entry{linear - 4, seen_.linear.read32(linear - 4), high};
  if (global && is_task_segment(high))
    task_ = TaskSwitch{cpu_.registers.state().tr, entry.base(), false, {}};
  else if (entry.type() == kCallGate16 || entry.type() == kCallGate32)
    gate_ = entry;
  else if (entry.is_code())
    code_ = entry;
}

bool FarTransfer::reads_null_descriptor(std::uint64_t linear) {
  return !cpu_.in_real_mode() && gate_ && cpu_.walker.behind(linear, tables_.places().gdt) < 8;
}

std::span<const std::uint8_t> FarTransfer::as_switched(const Insn& insn, bool store,
                                                       std::uint64_t linear,
                                                       std::span<const std::uint8_t> value) {
  constexpr std::uint32_t kCr3At = 0x1c, kTrapAt = 0x64, kDword = 4, kPaging = 0x80000000;
  // Descriptors are read after CR3 has been loaded.
  const ControlRegisters control = cpu_.registers.control();
  if (control.cr3 != cpu_.walker.cr3()) cpu_.walker.set_control(control, true);
  // CR3 of a task segment of 32 bits is read with paging only (Intel SDM vol. 3, 7.2.1).
  if (!store && value.size() == kDword && (control.cr0 & kPaging) == 0 &&
      cpu_.walker.behind(linear, task_->new_base) == kCr3At)
    return value.first(0);
  // The word with the T bit; the emulator reads what follows it too.
  if (!store && cpu_.walker.behind(linear, task_->new_base) == kTrapAt) return value.first(2);
  if (!store || cpu_.walker.behind(linear, flags_at(task_->old_task)) != 0) return value;
  // IRET saves EFLAGS without NT; the emulator saves it twice, with NT at first. RF does not
  // outlive the instruction that a fault returned to; in the emulator it may, to the end of a
  // block.
  std::uint32_t flags = dword_of(value);
  flags &= insn.what.kind == InsnKind::iret ? ~(kNestedTask | kResume) : ~kResume;
  task_->flags = bytes_of(flags);
  const std::span<const std::uint8_t> saved(task_->flags.data(), value.size());
  seen_.linear.correct(linear, saved);
  return std::exchange(task_->saved_flags, true) ? saved.first(0) : saved;
}

std::span<const std::uint8_t> FarTransfer::as_returned(const Insn& insn, std::uint64_t linear,
                                                       std::span<const std::uint8_t> value) {
  if (flight_.accesses++ == 0) first_access_ = linear;
  if (value.size() != 4 || cpu_.walker.long_mode()) return value;
  // A return to virtual-8086 mode takes all selectors as dwords.
  constexpr std::uint32_t kFlagsAt = 8;
  std::uint64_t at = cpu_.walker.behind(linear, first_access_);
  // A stack of 16 bits goes on at its beginning.
  const auto from_its_beginning = static_cast<std::uint32_t>(at) + kSegmentBytes;
  if ((cpu_.registers.gpr(4) & (kSegmentBytes - 1)) + from_its_beginning >= kSegmentBytes &&
      from_its_beginning <= insn.what.stack_segment_at)
    at = from_its_beginning;
  if (insn.what.kind == InsnKind::iret && at == kFlagsAt)
    to_virtual8086_ = (dword_of(value) & kVirtual8086) != 0;
  return at == insn.what.stack_segment_at && !to_virtual8086_ ? value.first(2) : value;
}

/// It loads CS, and SS with another privilege level; a task switch loads all segments. Of these
/// loads the emulator marks none in the descriptor.
void FarTransfer::finish(const LoggedState* after) {
  if (cpu_.in_real_mode()) return;
  const bool switched = task_.has_value();
  task_.reset();
  if (!switched) refuse_wrong_end(after);
  if (switched) {
    tables_.forget();
    cpu_.bases.forget();
    cpu_.load_breakpoints();
    const ControlRegisters control = cpu_.registers.control();
    cpu_.walker.set_control(control, control.cr3 != cpu_.walker.cr3());
  }
  constexpr unsigned kCs = 1, kSs = 2, kSegments = 6;
  if (after != nullptr ? (after->eflags & kVirtual8086) != 0 : cpu_.registers.in_virtual8086())
    return;
  const auto selector = [&](unsigned n) {
    return after != nullptr ? static_cast<std::uint16_t>(after->segment[n].selector)
                            : cpu_.registers.selector(n);
  };
  // IRET of 64-bit mode loads SS whatever the level.
  const bool from_64_bits = flight_.insn != nullptr && flight_.insn->what.kind == InsnKind::iret &&
                            flight_.insn->code == CodeSize::bits64;
  const bool loads_stack = (selector(kCs) & 3u) != level_ || from_64_bits;
  for (unsigned n = 0; n < kSegments; ++n)
    if (switched || n == kCs || (n == kSs && loads_stack)) tables_.mark_loaded(selector(n));
}

/// It has ended where on a processor it would not have, or elsewhere.
void FarTransfer::refuse_wrong_end(const LoggedState* after) {
  if (to_virtual8086_ && !from_virtual8086_ && level_ != 0)
    return seen_.recording.give_up(
        "IRET went to virtual-8086 mode from another privilege level than 0");
  if (!code_) return;
  if (gate_ && is_far_call(*flight_.insn)) {
    if (gate_->type() == kCallGate16 && gate_->upper_offset() != 0)
      return seen_.recording.give_up(
          "a call gate of the 286 was used whose last word is not zero, which this emulator takes "
          "for a part of the offset");
    if (code_->conforming() && code_->dpl() < level_)
      return seen_.recording.give_up(
          "a call gate led to a conforming segment, with which this emulator changes the privilege "
          "level");
  }
  const std::uint64_t ip = after != nullptr ? after->ip : cpu_.registers.ip();
  if (ip > code_->limit())
    seen_.recording.give_up(
        "a far transfer went beyond the end of its code segment, which processors refuse");
}

void FarTransfer::refuse_wrong_exception(const LoggedEvent& event) {
  if (!loads_code_segment(flight_.insn->what.kind) || cpu_.in_real_mode()) return;
  const TableEntry named = tables_.peek(event.error_code);
  if (named.linear == 0 || named.present()) return;
  // A stack that is not present is #SS (Intel SDM vol. 2, IRET and CALL).
  if (named.is_writable_data() && (event.vector == kTaskSegment || event.vector == kNotPresent))
    seen_.recording.give_up(
        "a stack segment that is not present raised an exception other than #SS");
  // So is a code segment after the gate of a JMP #NP.
  if (named.is_code() && event.vector == kProtection && gate_)
    seen_.recording.give_up(
        "a code segment that is not present, named by a call gate, did not raise #NP");
}

}  // namespace citcat::monitor
