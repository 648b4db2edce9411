// Several processors that take turns: a recorder for each. The emulator runs them one after the
// other in one thread, so everything that one of them does between two turns of another happens
// between these turns.

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kLocalApic = 0xfee00000, kPageBytes = 0x1000;
/// The two halves of the interrupt command register (Intel SDM vol. 3, 10.6.1).
constexpr std::uint32_t kCommandLow = 0x300, kCommandHigh = 0x310;

}  // namespace

void Recorder::share(unsigned number, std::vector<BusModel*> others) {
  number_ = number;
  several_ = true;
  bus_.share(number, std::move(others));
}

void Recorder::begin_at_rest() {
  constexpr std::uint64_t kResetBase = 0xffff0000, kResetIp = 0xfff0;
  resume();
  begin_with(0);
  const LoggedState state = registers_.state();
  send_emulator_state(state, state.code64 ? state.ip : static_cast<std::uint32_t>(state.ip));
  take_control();
  next_linear_ = kNowhere;
  waits_ = number_ != 0 && state.segment[1].base == kResetBase && state.ip == kResetIp;
}

/// Whether the instruction in flight is about to go on, or to begin anew: the next iteration of a
/// REP, or a block that is translated once more.
bool Recorder::goes_on_where_it_was() {
  const bool flat = in_flight_->code == CodeSize::bits64;
  const std::uint64_t base = flat                  ? 0
                             : code_segment_.known ? code_segment_.base
                                                   : registers_.state().segment[1].base;
  return !in_flight_->what.branch &&
         narrowed(*in_flight_, registers_.ip() + base) == in_flight_linear_;
}

void Recorder::rest() {
  if (!active_) return;
  if (log_.pending()) {
    if (in_real_mode())
      return give_up(
          "an interrupt of real mode came when another processor was about to run: nobody tells "
          "what it pushed");
    take_new_log(Insn{});
    if (!active_) return;
  }
  // INT n of real mode is told by what its handler begins with.
  const bool delivers = in_flight_ != nullptr && delivers_itself(in_flight_->what.kind);
  if (in_flight_ != nullptr && !delivers && !goes_on_where_it_was()) finish();
  set_position();
  sink_.pass_time();
}

void Recorder::initialised() {
  if (!active_) return;
  const unsigned driver = sink_.selected();
  sink_.select(number_);
  in_flight_ = nullptr;
  iterations_ = 0;
  set_position();
  if (!waits_) sink_.event(RecordType::init, 0, 0);
  waits_ = true;
  sink_.select(driver);
}

/// The first instruction after INIT and SIPI is about to start: CS tells the vector.
void Recorder::take_start() {
  waits_ = false;
  set_position();
  sink_.event(RecordType::startup, static_cast<std::uint8_t>(registers_.selector(1) >> 8), 1);
  change_mode();
  follow_a20();
  walker_.set_control(registers_.control(), true);
  next_linear_ = kNowhere;
}

/// A store to a register of the local APIC, which sends messages to others.
void Recorder::note_message(std::uint32_t address, std::span<const std::uint8_t> bytes) {
  if (address - kLocalApic >= kPageBytes) return;
  if (address - kLocalApic == kCommandHigh) destination_ = dword_of(bytes) >> 24;
  if (address - kLocalApic == kCommandLow) send_message(dword_of(bytes), destination_);
}

void Recorder::send_message(std::uint32_t command, std::uint32_t destination) {
  const std::uint32_t details = (command >> 11 & 1) |       // logical
                                (command >> 14 & 3) << 1 |  // level, level-triggered
                                (command >> 18 & 3) << 4;   // shorthand
  sink_.message((command & 0xff) | (command >> 8 & 7) << 8 | (destination & 0xff) << 16 |
                details << 24);
}

}  // namespace citcat::monitor
