// Loads of CS, task switches and the A20 gate: what a processor does with descriptors and task
// segments where the emulator does otherwise.

#include <cstring>
#include <utility>

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kNestedTask = 0x4000;  // EFLAGS.NT

/// Task segments of 16 and 32 bits, free and busy, by the second dword of their descriptors.
bool is_task_segment(std::uint32_t high) { return (high >> 8 & 0x15) == 1; }

/// Where EFLAGS is kept in a task segment (Intel SDM vol. 3, figures 7-2 and 7-10).
std::uint64_t flags_at(const LoggedSegment& task) {
  return task.base + ((task.flags & 0x800) != 0 ? 0x24 : 0x10);
}

}  // namespace

void Recorder::follow_a20() { walker_.set_a20(registers_.state().a20); }

const Recorder::Tables& Recorder::tables() {
  if (!tables_) {
    const LoggedState state = registers_.state();
    const std::uint32_t ldt_limit = (state.ldtr.selector & 0xfffc) != 0 ? state.ldtr.limit : 0;
    tables_ = {state.gdt_base, state.gdt_limit, state.ldtr.base, ldt_limit, state.idt_base};
  }
  return *tables_;
}

/// A far transfer has read a dword: the second one of a task segment's descriptor begins a switch,
/// or else a fault; that of a call gate or code segment says where it goes.
void Recorder::note_descriptor(std::uint64_t linear, std::uint32_t high) {
  const std::uint64_t in_global = walker_.behind(linear, tables().gdt);
  const std::uint64_t in_local = walker_.behind(linear, tables().ldt);
  const bool global = in_global <= tables().gdt_limit && in_global % 8 == 4;
  const bool local = in_local <= tables().ldt_limit && in_local % 8 == 4;
  if (task_ || (!global && !local)) return;
  const TableEntry entry{linear - 4, read_linear32(linear - 4), high};
  constexpr unsigned kCallGate16 = 4, kCallGate32 = 12;
  if (global && is_task_segment(high))
    task_ = TaskSwitch{registers_.state().tr, entry.base(), false, {}};
  else if (entry.type() == kCallGate16 || entry.type() == kCallGate32)
    transfer_.gate = entry;
  else if (entry.is_code())
    transfer_.code = entry;
}

/// The first entry of the GDT, which no processor reads: a gate's selector may be null, and the
/// emulator looks for that afterwards.
bool Recorder::reads_null_descriptor(std::uint64_t linear) {
  return !in_real_mode() && transfer_.gate && walker_.behind(linear, tables().gdt) < 8;
}

/// What a processor moves of `value` while it switches tasks.
std::span<const std::uint8_t> Recorder::as_switched(const Insn& insn, bool store,
                                                    std::uint64_t linear,
                                                    std::span<const std::uint8_t> value) {
  constexpr std::uint32_t kTrapAt = 0x64;
  // Descriptors are read after CR3 has been loaded.
  const ControlRegisters control = registers_.control();
  if (control.cr3 != walker_.cr3()) walker_.set_control(control, true);
  // The word with the T bit; the emulator reads what follows it too.
  if (!store && walker_.behind(linear, task_->new_base) == kTrapAt) return value.first(2);
  if (!store || walker_.behind(linear, flags_at(task_->old_task)) != 0) return value;
  // IRET saves EFLAGS without NT; the emulator saves it twice, with NT at first. RF does not
  // outlive the instruction that a fault returned to; in the emulator it may, to the end of a
  // block.
  std::uint32_t flags = dword_of(value);
  flags &= insn.what.kind == InsnKind::iret ? ~(kNestedTask | kResume) : ~kResume;
  task_->flags = bytes_of(flags);
  const std::span<const std::uint8_t> saved(task_->flags.data(), value.size());
  correct_bytes(linear, saved);
  return std::exchange(task_->saved_flags, true) ? saved.first(0) : saved;
}

/// A far transfer has ended. It loads CS, and SS with another privilege level; a task switch loads
/// all segments. Of these loads the emulator marks none in the descriptor.
void Recorder::finish_transfer(const LoggedState* after) {
  if (in_real_mode()) return;
  const bool switched = task_.has_value();
  task_.reset();
  if (!switched) refuse_wrong_transfer(after);
  if (switched) {
    tables_.reset();
    known_base_ = {};
    breakpoints_.load(registers_.state(), registers_.long_mode_registers().has_value());
    const ControlRegisters control = registers_.control();
    walker_.set_control(control, control.cr3 != walker_.cr3());
  }
  constexpr unsigned kCs = 1, kSs = 2, kSegments = 6;
  if (after != nullptr ? (after->eflags & kVirtual8086) != 0 : registers_.in_virtual8086()) return;
  const auto selector = [&](unsigned n) {
    return after != nullptr ? static_cast<std::uint16_t>(after->segment[n].selector)
                            : registers_.selector(n);
  };
  // IRET of 64-bit mode loads SS whatever the level.
  const bool loads_stack = (selector(kCs) & 3u) != level_ || returns_from_64_bits();
  for (unsigned n = 0; n < kSegments; ++n)
    if (switched || n == kCs || (n == kSs && loads_stack)) mark_loaded(selector(n));
}

/// An instruction of 16 or 32 bits is about to run, after one that has loaded segment registers.
void Recorder::learn_segments() {
  const SegmentMode mode = in_real_mode()                ? SegmentMode::real
                           : registers_.in_virtual8086() ? SegmentMode::virtual8086
                                                         : SegmentMode::protected_mode;
  segments_.learn(
      mode, [this](unsigned n) { return registers_.selector(n); },
      [this] { return registers_.state(); });
}

void Recorder::mark_loaded(std::uint16_t selector) {
  if ((selector & 0xfffc) == 0) return;
  const bool local = (selector & 4) != 0;
  const std::uint32_t at = selector & 0xfff8u;
  if (at + 7 > (local ? tables().ldt_limit : tables().gdt_limit)) return;
  mark_accessed((local ? tables().ldt : tables().gdt) + at);
}

/// Sets the accessed bit of the descriptor at this linear address, which has been read: a write of
/// one byte, where the bit was clear.
void Recorder::mark_accessed(std::uint64_t descriptor) {
  constexpr std::uint8_t kAccessed = 1, kCodeOrData = 0x10;
  const std::uint64_t linear = descriptor + 5;
  const auto at = walker_.translate(linear, false);
  if (!at || !memory_.is_readable(*at, 1)) return;
  std::uint8_t type = 0;
  memory_.read(*at, {&type, 1});
  memory_.as_processor_left(*at, {&type, 1});
  if ((type & kAccessed) != 0 || (type & kCodeOrData) == 0) return;
  type |= kAccessed;
  if (const auto physical = walker_.translate_own_store(linear)) {
    memory_.write(*physical, {&type, 1}, Notice::of_accessed);
    bus_.write(*physical, {&type, 1});
  }
}

}  // namespace citcat::monitor
