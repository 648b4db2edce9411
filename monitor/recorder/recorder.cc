#include "monitor/recorder/recorder.h"

#include <algorithm>
#include <cstddef>

namespace citcat::monitor {

void Recorder::begin(const Insn& first, std::uint32_t window) {
  seen_.cpu.log.skip();
  if (!seen_.cpu.memory.snapshot()) {
    seen_.recording.give_up("no memory for a copy of the guest's RAM");
    return;
  }
  begin_with(window);
  if (window != 0) {
    first_state_.send_dump(window);
  } else {
    const LoggedState state = seen_.cpu.registers.state();
    first_state_.send(state, first.narrowed(seen_.code.find(first) - state.segment[1].base));
  }
  seen_.control.take();
}

/// The caches are empty then.
void Recorder::begin_with(std::uint32_t window) {
  seen_.recording.begin();
  units_.window.open(window);
  seen_.flight.completed = 0;
  seen_.flight.insn = nullptr;
  seen_.cpu.bus.set_uncached_window(window, window != 0 ? CITCAT_WINDOW_MIN_BYTES : 0);
  seen_.cpu.bus.clear();
  seen_.recording.set_position();
  seen_.cpu.sink.event(RecordType::flush, 2, 1, kDriver);
}

/// Why the recording cannot go on, if it cannot.
const char* Recorder::problem() const {
  const ObservedProcessor& cpu = seen_.cpu;
  if (cpu.log.failed()) return "the emulator's log of interrupts cannot be followed further";
  return nullptr;
}

bool Recorder::arrive(const Insn& insn) {
  Flight& flight = seen_.flight;
  seen_.cpu.walker.take_back_pointer_marks();
  if (waits_) take_start();
  events_.take(insn);
  if (!active()) return false;
  if (const char* const why = problem()) {
    seen_.recording.give_up(why);
    return false;
  }
  const std::uint64_t linear = seen_.code.find(insn);
  if (flight.insn != nullptr && flight.linear == linear && !flight.insn->what.branch) {
    // It starts again: the next iteration, or the block was translated anew. Accesses of an
    // iteration that did not get to its end are made again.
    if (flight.insn->what.repeated && (flight.insn == &insn || insn.bytes == flight.insn->bytes)) {
      flight.attempt.begin(flight.accesses != 0);
      flight.accesses = 0;
      // The first iteration belongs to the block before it, all others to a block of their own.
      flight.insn = &insn;
      return false;
    }
    if (!flight.insn->what.repeated) {
      flight.attempt.begin(true);
      execution_.prepare(insn);
      flight.insn = &insn;
      return false;
    }
    // It has stored over itself: what is there now is another instruction, and fetched.
  } else {
    execution_.finish();
    if (!active()) return false;
  }
  arrived_at_ = linear;
  return true;
}

void Recorder::enter(const Insn& insn) {
  const std::uint64_t linear = arrived_at_;
  if (units_.guard.has_to_learn(insn)) units_.guard.learn();
  seen_.recording.set_position();
  seen_.code.fetch(insn, linear);
  seen_.flight.attempt.begin(false);
  execution_.prepare(insn);
  seen_.flight.insn = &insn;
  seen_.flight.linear = linear;
}

bool Recorder::arrive_behind() {
  Flight& flight = seen_.flight;
  if (flight.insn == nullptr || !flight.insn->ends_plainly) {
    execution_.finish();
  } else {
    flight.iterations = 0;
    ++flight.completed;
  }
  return active();
}

void Recorder::enter_behind(const Insn& insn) {
  Flight& flight = seen_.flight;
  if (units_.guard.has_to_learn(insn)) units_.guard.learn();
  const std::uint64_t linear = seen_.code.linear_of(insn);
  if (insn.continues_line && seen_.code.line_is_known()) {
    seen_.code.pass(linear, insn.size);
  } else if (!seen_.code.fetch_unseen(insn, linear)) {
    seen_.recording.set_position();
    seen_.code.fetch(insn, linear);
  }
  flight.attempt.begin(false);
  if (insn.ends_plainly)
    flight.accesses = 0;
  else
    execution_.prepare(insn);
  flight.insn = &insn;
  flight.linear = linear;
}

void Recorder::follow_all(const Insn* first, const Insn* last) {
  while (first <= last && active()) {
    const Insn* const alike = first + std::min<std::ptrdiff_t>(first->alike_behind, last - first);
    if (pass(*first, *alike))
      first = alike + 1;
    else
      follow(*first++);
  }
}

bool Recorder::start_plainly(const Insn& insn, bool calm) {
  Flight& flight = seen_.flight;
  const bool plain = flight.insn != nullptr && flight.insn->ends_plainly && insn.ends_plainly &&
                     insn.first_in_block;
  if (!plain || (calm ? seen_.cpu.log.pending() : something_happened()) ||
      units_.guard.has_to_learn(insn))
    return false;
  const std::uint64_t linear = seen_.code.find(insn);
  if (flight.linear == linear && !flight.insn->what.branch) return false;
  flight.iterations = 0;
  ++flight.completed;
  fetch_behind(insn);
  flight.attempt.begin(false);
  flight.accesses = 0;
  flight.insn = &insn;
  flight.linear = linear;
  return true;
}

bool Recorder::iterate_plainly(const Insn& insn) {
  Flight& flight = seen_.flight;
  if (flight.insn != &insn || !insn.what.repeated || something_happened()) return false;
  if (seen_.code.find(insn) != flight.linear) return false;
  flight.attempt.begin(flight.accesses != 0);
  flight.accesses = 0;
  return true;
}

bool Recorder::take_out(std::uint64_t address, unsigned size, const Insn& first, const Insn& last) {
  constexpr std::uint64_t kNear = 64;  // more than a line, and an instruction
  GuestMemory& memory = seen_.cpu.memory;
  const bool is_near = address + kNear >= first.physical && address < last.physical + kNear;
  const bool may_walk = last.size > left_in_page(last.linear) ||
                        !seen_.cpu.walker.holds(seen_.code.linear_of(first), false, first.physical);
  if ((!is_near && !may_walk) || size > left_in_page(address) || !memory.is_ram(address, size))
    return false;
  memory.take_back(address, size);
  return true;
}

}  // namespace citcat::monitor
