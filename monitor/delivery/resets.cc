#include "monitor/delivery/resets.h"

#include <array>
#include <cstdio>

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

void Resets::take(LogItem item, const LoggedEvent& found, LoggedEvent* failed) {
  const bool shut_down = item == LogItem::shutdown;
  LoggedEvent reset = found;
  if (cpu_.several)
    return seen_.recording.give_up(
        "the processors were reset, and a recording of several processors cannot go on through a "
        "reset; with -no-reboot the emulator ends there");
  if (shut_down && cpu_.log.next(reset) != LogItem::reset)
    return seen_.recording.give_up(
        "the processor shut down, and the emulator reports no reset after it");
  if (failed != nullptr) {
    LoggedEvent third = found;
    third.before = reset.before;
    third.cr2 = reset.before.cr2;
    deliveries_.deliver(*failed, &third);
  } else if (!shut_down) {
    execution_.end_before(reset.before, "a reset");
  }
  if (!seen_.recording.active()) return;
  seen_.flight.insn = nullptr;
  seen_.recording.set_position();
  if (shut_down) cpu_.sink.event(RecordType::shutdown, 0, 0);
  cpu_.sink.event(RecordType::reset, shut_down ? kGoesOnBehindShutdown : kGoesOn, 1);
  say_signature(cpu_.sink, seen_.flight.completed, cpu_.registers.gpr(2));
  begin_anew();
  // The emulator may reset it several times.
  LogItem behind = LogItem::reset;
  while (behind == LogItem::reset) behind = cpu_.log.next(reset);
  if (seen_.recording.active() && behind != LogItem::nothing)
    seen_.recording.give_up(
        "the emulator reports an event between a reset and the first instruction after it");
}

/// The processor's state is that of a reset.
void Resets::begin_anew() {
  seen_.flight.iterations = 0;
  cpu_.in_system_management = false;
  cpu_.memory.show_smram(false);
  cpu_.breakpoints = {};
  cpu_.facts.xcr0 = kX87State;
  units_.x87.begin(std::array<std::uint8_t, kSlotBytes>{}, nullptr);
  units_.far_transfer.clear();
  seen_.control.take();
  units_.task_register.note(cpu_.registers.state());
  seen_.code.jump();
}

}  // namespace citcat::monitor
