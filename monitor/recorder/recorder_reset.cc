// Resets of the whole machine: the processor begins anew, memory stays, and the recording goes on.
// Caches stay as they are too: the emulator has none that a reset could empty.

#include <cstdio>

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

// What a RESET record says (docs/formats/capture.md).
constexpr std::uint8_t kGoesOn = 1, kGoesOnBehindShutdown = 2;

/// What EDX holds after a reset (Intel SDM vol. 3, table 9-1), as CPUID would tell it.
void say_signature(RecordSink& sink, std::uint64_t instruction, std::uint64_t edx) {
  char text[96];
  std::snprintf(text, sizeof text, "value %llu,CPUID,0000fff0,%08x,00000000,00000000,00000000",
                static_cast<unsigned long long>(instruction), static_cast<std::uint32_t>(edx));
  sink.say(text);
}

}  // namespace

/// `found`: a shutdown or a reset. `failed`: the delivery of a double fault that shut the processor
/// down, where the emulator has logged it.
void Recorder::take_reset(LogItem item, const LoggedEvent& found, LoggedEvent* failed) {
  const bool shut_down = item == LogItem::shutdown;
  LoggedEvent reset = found;
  if (several_)
    return give_up(
        "the processors were reset, through which a recording of several does not go; with "
        "-no-reboot the emulator ends there");
  if (shut_down && log_.next(reset) != LogItem::reset)
    return give_up("the processor shut down, and the emulator reports no reset after it");
  if (failed != nullptr) {
    LoggedEvent third = found;
    third.before = reset.before;
    third.cr2 = reset.before.cr2;
    deliver(*failed, &third);
  } else if (!shut_down) {
    end_before_reset(reset.before);
  }
  if (!active_) return;
  in_flight_ = nullptr;
  set_position();
  if (shut_down) sink_.event(RecordType::shutdown, 0, 0);
  sink_.event(RecordType::reset, shut_down ? kGoesOnBehindShutdown : kGoesOn, 1);
  say_signature(sink_, completed_, registers_.gpr(2));
  iterations_ = 0;
  breakpoints_ = {};
  facts_.xcr0 = kX87State;
  fpu_.clear();
  tags_.load_image(std::array<std::uint8_t, kSlotBytes>{});
  task_.reset();
  take_control();
  note_task_base(registers_.state());
  next_linear_ = kNowhere;
  // The emulator may reset it several times.
  LogItem behind = LogItem::reset;
  while (behind == LogItem::reset) behind = log_.next(reset);
  if (active_ && behind != LogItem::nothing)
    give_up("the emulator reports an event between a reset and the first instruction after it");
}

/// The instruction in flight has ended, unless it is about to go on. The emulator's registers are
/// others by now.
void Recorder::end_before_reset(const LoggedState& before) {
  if (in_flight_ == nullptr) return;
  const Insn& insn = *in_flight_;
  if (in_real_mode() && delivers_itself(insn.what.kind))
    return give_up("a reset came right after INT n of real mode: what it pushed is not known");
  const std::uint64_t base = before.code64 ? 0 : before.segment[1].base;
  const bool stays = !insn.what.branch && narrowed(insn, before.ip + base) == in_flight_linear_;
  if (stays && !repeat_used_up(before)) return;
  left_ = &before;
  finish(&before);
  left_ = nullptr;
}

}  // namespace citcat::monitor
