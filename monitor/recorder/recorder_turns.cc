// Several processors that take turns. The emulator runs them one after the other in one thread, so
// everything that one of them does between two turns of another happens between these turns.

#include <utility>

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {

void Recorder::share(unsigned number, std::vector<BusModel*> others) {
  seen_.cpu.number = number;
  seen_.cpu.several = true;
  seen_.cpu.bus.share(number, std::move(others));
}

void Recorder::begin_at_rest() {
  constexpr std::uint64_t kResetBase = 0xffff0000, kResetIp = 0xfff0;
  resume();
  begin_with(0);
  const LoggedState state = seen_.cpu.registers.state();
  first_state_.send(state, state.code64 ? state.ip : static_cast<std::uint32_t>(state.ip));
  seen_.control.take();
  seen_.code.jump();
  waits_ = seen_.cpu.number != 0 && state.segment[1].base == kResetBase && state.ip == kResetIp;
  // The state that was sent does not say that the processor waits for a SIPI.
  if (waits_) seen_.cpu.sink.event(RecordType::init, 0, 0);
}

/// Whether the instruction in flight is about to go on, or to begin anew: the next iteration of a
/// REP, or a block that is translated once more.
bool Recorder::goes_on_where_it_was() {
  const Insn& insn = *seen_.flight.insn;
  const std::uint64_t base = insn.code == CodeSize::bits64 ? 0 : seen_.code.known_base();
  return !insn.what.branch && insn.narrowed(seen_.cpu.registers.ip() + base) == seen_.flight.linear;
}

void Recorder::rest() {
  if (!active()) return;
  if (seen_.cpu.log.pending()) {
    if (seen_.cpu.in_real_mode())
      return seen_.recording.give_up(
          "an interrupt of real mode came when another processor was about to run: it is not known "
          "what the interrupt pushed");
    events_.take_new(Insn{});
    if (!active()) return;
  }
  // INT n of real mode is told by what its handler begins with.
  const Flight& flight = seen_.flight;
  if (flight.insn != nullptr && !flight.delivers_itself() && !goes_on_where_it_was())
    execution_.finish();
  seen_.recording.set_position();
  seen_.cpu.sink.pass_time();
}

void Recorder::initialised() {
  if (!active()) return;
  RecordSink& sink = seen_.cpu.sink;
  const unsigned driver = sink.selected();
  resume();
  seen_.flight.insn = nullptr;
  seen_.flight.iterations = 0;
  seen_.recording.set_position();
  if (!waits_) sink.event(RecordType::init, 0, 0);
  waits_ = true;
  sink.select(driver);
}

/// The first instruction after INIT and SIPI is about to start: CS tells the vector.
void Recorder::take_start() {
  waits_ = false;
  seen_.recording.set_position();
  const std::uint16_t segment = seen_.cpu.registers.selector(1);
  seen_.cpu.sink.event(RecordType::startup, static_cast<std::uint8_t>(segment >> 8), 1);
  seen_.control.take_paging();
  seen_.code.jump();
}

}  // namespace citcat::monitor
