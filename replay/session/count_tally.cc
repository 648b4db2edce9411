#include "replay/session/count_tally.h"

#include <algorithm>

namespace citcat {
namespace {

enum class Transfer : std::uint8_t { none, conditional, always };

Transfer transfer_of(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
    case InstructionClass::into:
      return Transfer::conditional;
    case InstructionClass::jump:
    case InstructionClass::call:
    case InstructionClass::ret:
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::int_n:
    case InstructionClass::int3:
    case InstructionClass::icebp:
    case InstructionClass::sysenter:
    case InstructionClass::sysexit:
    case InstructionClass::syscall:
    case InstructionClass::sysret:
    case InstructionClass::rsm:
      return Transfer::always;
    default:
      return Transfer::none;
  }
}

/// Instructions that load segments or system registers, or wait until all before have completed.
bool serialises(InstructionClass kind) {
  return kind >= InstructionClass::push_segment && kind <= InstructionClass::popf;
}

}  // namespace

std::optional<EventCount> CountTally::first_count(const Recording& recording) {
  const auto first = std::find_if(recording.interrupts.begin(), recording.interrupts.end(),
                                  [](const Interrupt& i) { return i.count.has_value(); });
  return first == recording.interrupts.end() ? std::nullopt : first->count;
}

CountTally::CountTally(const Recording& recording, const EventCount& first) : unit_(first.unit) {
  s_.known = first.from_start;
  const bool plain =
      std::all_of(recording.interrupts.begin(), recording.interrupts.end(),
                  [](const Interrupt& i) { return i.kind == Interrupt::Kind::external; });
  // Else the order of acknowledges is not that of deliveries, and counts are held to the start.
  if (!plain) return;
  for (const Interrupt& i : recording.interrupts) counts_.push_back(i.count);
}

CountTally::Range CountTally::range() const {
  Range r;
  if (unit_ == CountUnit::completions) {
    r.least = s_.base + (machine_->position().instruction - s_.begin);
  } else {
    r.least = s_.base + s_.transfers;
  }
  r.most = r.least + s_.doubtful;
  if (!s_.conditional) return r;
  if (s_.conditional->either) {
    ++r.most;
  } else if (machine_->engine().eip() != s_.conditional->next_eip) {
    ++r.least;
    ++r.most;
  }
  return r;
}

bool CountTally::may_be(const EventCount& count) const {
  if (!s_.known) return true;
  const Range r = range();
  return r.least <= count.value && count.value <= r.most;
}

bool CountTally::is_beyond(const EventCount& count) const {
  return s_.known && range().least > count.value;
}

/// A conditional branch has gone on at `eip`.
void CountTally::settle(std::uint32_t eip) {
  if (!s_.conditional) return;
  if (s_.conditional->either) {
    ++s_.doubtful;
  } else if (eip != s_.conditional->next_eip) {
    ++s_.transfers;
  }
  s_.conditional.reset();
}

void CountTally::instruction(const ExecutedInstruction& e, Position) {
  if (unit_ == CountUnit::completions) {
    if (e.info->is_repeated()) ++s_.doubtful;
    return;
  }
  const auto eip = static_cast<std::uint32_t>(e.offset);
  settle(eip);
  const Transfer transfer = transfer_of(e.info->kind);
  if (transfer == Transfer::none) {
    if (unit_ == CountUnit::branch_pulses && serialises(e.info->kind)) ++s_.doubtful;
  } else if (transfer == Transfer::always || unit_ == CountUnit::blocks) {
    ++s_.transfers;
  } else {
    State::Conditional branch;
    branch.next_eip = eip + e.info->length;
    // At the end of a segment of 64 KiB it may go on at its beginning.
    const bool wraps = eip <= 0xffff && branch.next_eip > 0xffff;
    const LinearAddr next = e.info->bits64 ? LinearAddr{e.linear.value + e.info->length}
                                           : e.linear.plus32(e.info->length);
    branch.either = wraps || (e.ea_count != 0 && e.ea[0] == next);
    s_.conditional = branch;
  }
}

/// The count at an acknowledge is what it was, whatever was doubtful before.
void CountTally::take_count(std::uint64_t instruction) {
  const std::size_t number = s_.interrupts++;
  if (number >= counts_.size() || !counts_[number]) return;
  s_.known = true;
  s_.base = counts_[number]->value;
  s_.begin = instruction;
  s_.transfers = s_.doubtful = 0;
}

void CountTally::delivered(const DeliveredEvent& event, Position now) {
  if (event.kind != DeliveredEvent::Kind::software) {
    settle(static_cast<std::uint32_t>(event.eip));
  }
  if (event.kind == DeliveredEvent::Kind::external) take_count(now.instruction);
  const bool pins = unit_ == CountUnit::completions || unit_ == CountUnit::branch_pulses;
  if (!pins || event.kind == DeliveredEvent::Kind::software) return;
  ++s_.doubtful;
  // The instruction that faults may be reported, too.
  if (event.kind == DeliveredEvent::Kind::exception) ++s_.doubtful;
}

}  // namespace citcat
