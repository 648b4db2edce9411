#include "monitor/qemu/recorded_window.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/qemu/probe.h"
#include "monitor/qemu/start_watch.h"
#include "monitor/qemu/turn_taking.h"

namespace citcat::monitor {
namespace {

void begin(const Insn& insn) {
  char text[128];
  std::snprintf(text, sizeof text, "start address=%08llx window=%08x",
                static_cast<unsigned long long>(insn.linear), monitor->window);
  monitor->sink.say(text);
  if (!monitor->options.probe.empty()) {
    write_probe();
    finish("probe");
    return;
  }
  monitor->phase = Phase::recording;
  if (monitor->several()) monitor->log.skip();
  monitor->now->recorder.resume();
  monitor->now->recorder.begin(insn, monitor->window);
  for (const auto& one : monitor->processors) {
    if (one.get() == monitor->now) continue;
    const AsCurrent as(*one);
    one->next_begun = nullptr;  // what it has begun by then is not recorded
    one->recorder.begin_at_rest();
  }
  monitor->now->recorder.resume();
}

/// Whether the emulator shows all of the registers: in compatibility mode it is half of them.
bool shows_all_registers(Processor& one) {
  const AsCurrent as(one);
  return !one.registers.in_long_mode() || one.registers.state().code64;
}

/// Where a run was taken up, nobody has seen what came before.
bool finds_model() {
  if (monitor->options.before == 0 || monitor->knows_model) return true;
  constexpr unsigned kMostTries = 100000;
  static unsigned tries = 0;
  const auto facts = monitor->now->registers.model();
  if (!facts && ++tries == kMostTries)
    stop_without_recording("this QEMU does not show the model-specific registers of a processor");
  if (!facts) return false;
  monitor->now->recorder.facts() = *facts;
  return monitor->knows_model = true;
}

/// Registers are exact, flags too, at the first instruction of a block; the driver's start is one.
bool may_begin(const Insn& insn) {
  if (monitor->options.start.kind == Trigger::Kind::driver) return monitor->begin_next;
  if (!insn.first_in_block) return false;
  if (!monitor->several())
    return (insn.code == CodeSize::bits64 || !monitor->now->registers.in_long_mode()) &&
           finds_model();
  return std::all_of(monitor->processors.begin(), monitor->processors.end(),
                     [](const auto& one) { return shows_all_registers(*one); });
}

bool should_stop(const Insn& insn) {
  const Trigger& stop = monitor->options.stop;
  if (stop.kind == Trigger::Kind::none) return false;
  switch (stop.kind) {
    case Trigger::Kind::address:
      return insn.linear == stop.number;
    case Trigger::Kind::count:
      return recorded().instructions >= stop.number;
    case Trigger::Kind::process:
    case Trigger::Kind::exit: {
      const bool begins =
          insn.user && insn.first_in_block && monitor->stop_process.block(insn.code);
      return begins ||
             (insn.user && insn.what.calls_system && monitor->stop_process.call(insn.code));
    }
    default:
      return monitor->stop_next;
  }
}

/// Looks whether the recording ends before an instruction that has been arrived at: it is not
/// fetched then, and does not count.
bool ends_before(const Insn& insn) {
  if (!monitor->now->recorder.active() || monitor->sink.failed()) {
    finish("error");
  } else if (should_stop(insn) || monitor->now->recorder.stop_marker_seen()) {
    finish(monitor->now->recorder.stop_marker_seen() ? "marker" : "trigger");
  } else {
    return false;
  }
  return true;
}

/// Looks whether the recording goes on after the beginning of an instruction.
void check_end(const Insn& insn) {
  if (!monitor->now->recorder.active() || monitor->sink.failed()) {
    finish("error");
  } else if (insn.what.kind == InsnKind::out && is_trigger_port_write(monitor->stop_watch, insn)) {
    monitor->stop_next = true;  // with the next instruction: this one belongs to the recording
  }
}

void start(const Insn& insn) {
  if (monitor->phase == Phase::armed) {
    if (!may_begin(insn)) return note_model(insn);
    begin(insn);
  }
  if (monitor->phase != Phase::recording) return;
  const bool begins = monitor->now->recorder.arrive(insn);
  if (ends_before(insn)) return;
  if (begins) monitor->now->recorder.enter(insn);
  check_end(insn);
}

/// Whether so many instructions can begin without a look at each: the recording does not end before
/// one, and no other processor sees what they do.
bool goes_on(std::uint64_t instructions) {
  const Trigger& stop = monitor->options.stop;
  const Recorder& recorder = monitor->now->recorder;
  return !monitor->several() && monitor->phase == Phase::recording && recorder.active() &&
         !monitor->sink.failed() && !monitor->stop_next && !recorder.stop_marker_seen() &&
         (stop.kind != Trigger::Kind::count ||
          recorder.instructions() + instructions < stop.number);
}

/// While armed: the driver's marker may be stored.
void watch_for_marker(std::uint64_t address, std::span<const std::uint8_t> value) {
  std::uint32_t marker = 0, magic = 0;
  const auto physical = static_cast<std::uint32_t>(address);  // the window is below 4 GiB
  if (address != physical || value.size() != 4 ||
      (physical & 0xfff) != (CITCAT_MARK_OFFSET & 0xfff))
    return;
  std::memcpy(&marker, value.data(), 4);
  const std::uint32_t window = physical - CITCAT_MARK_OFFSET;
  if (marker != CITCAT_MARK_START || !monitor->memory.is_ram(window, CITCAT_WINDOW_MIN_BYTES))
    return;
  std::memcpy(&magic, monitor->memory.live(window), 4);
  if (magic != CITCAT_STATE_MAGIC) return;
  monitor->window = window;
  monitor->begin_next = true;
}

/// Tells the recorder of what was begun before a store, which has been made, as if it had not.
void catch_up_before(std::uint64_t address, std::span<const std::uint8_t> stored) {
  Processor& now = *monitor->now;
  const Insn* const last = *now.begun;
  if (now.next_begun == nullptr || now.next_begun > last) return;
  const bool out =
      now.recorder.take_out(address, static_cast<unsigned>(stored.size()), *now.next_begun, *last);
  catch_up();
  if (out) now.recorder.put_back(address, stored);
}

}  // namespace

void catch_up() {
  Processor& now = *monitor->now;
  const Insn* const last = *now.begun;
  if (now.next_begun == nullptr || now.next_begun > last) return;
  if (goes_on(static_cast<std::uint64_t>(last - now.next_begun) + 1)) {
    now.recorder.follow_all(now.next_begun, last);
    now.next_begun = last + 1;
    return;
  }
  while (now.next_begun != nullptr && now.next_begun <= last) {
    const Insn& insn = *now.next_begun++;
    if (monitor->phase == Phase::recording) {
      const bool begins = now.recorder.arrive_behind();
      if (ends_before(insn)) continue;
      if (begins) now.recorder.enter_behind(insn);
      check_end(insn);
    } else if (monitor->phase == Phase::armed) {
      start(insn);
    }
  }
}

void on_start(unsigned, void* user) {
  if (monitor->phase != Phase::recording && monitor->phase != Phase::armed) return;
  hear();
  catch_up();
  const Insn& insn = *static_cast<const Insn*>(user);
  if (insn.waits_for_stop || !goes_on(1) ||
      !(insn.ends_plainly ? monitor->now->recorder.start_plainly(insn)
                          : monitor->now->recorder.iterate_plainly(insn)))
    start(insn);
  *monitor->now->begun = &insn;
  monitor->now->next_begun = &insn + 1;
  if (monitor->several() && insn.first_in_block && monitor->phase == Phase::recording)
    end_turn_in_time();
}

void on_access(unsigned, qemu_plugin_meminfo_t info, std::uint64_t linear, void* user) {
  if (monitor->phase != Phase::recording && monitor->phase != Phase::armed) return;
  if (monitor->several() && !monitor->now->registers.is_current()) hear();
  const bool store = qemu_plugin_mem_is_store(info);
  const Insn& insn = *static_cast<const Insn*>(user);
  const qemu_plugin_hwaddr* const where = qemu_plugin_get_hwaddr(info, linear);
  if (where == nullptr) return catch_up();
  const bool device = qemu_plugin_hwaddr_is_io(where);
  const std::uint64_t address = qemu_plugin_hwaddr_phys_addr(where);
  const unsigned size = 1u << qemu_plugin_mem_size_shift(info);
  constexpr unsigned kMostUnseen = 8;
  const bool may_be_unseen = !monitor->several() && !device && size <= kMostUnseen;
  if (!store) {
    catch_up();
    if (monitor->phase != Phase::recording ||
        (may_be_unseen && monitor->now->recorder.load_unseen(insn, linear, address, size)))
      return;
  }
  const qemu_plugin_mem_value value = qemu_plugin_mem_get_value(info);
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(&value.data), size);
  if (store) {
    if (device)
      catch_up();
    else
      catch_up_before(address, bytes);
    if (monitor->phase == Phase::armed) return watch_for_marker(address, bytes);
    if (may_be_unseen && monitor->now->recorder.store_unseen(insn, linear, address, bytes)) return;
  }
  if (monitor->phase == Phase::recording)
    monitor->now->recorder.access(insn, store, linear, address, device, bytes);
}

}  // namespace citcat::monitor
