#include "monitor/qemu/recorded_window.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
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

/// In system management mode the state is not all of the processor's: RSM loads the rest of it.
bool is_managed() { return monitor->now->registers.state().smm; }

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
           !is_managed() && finds_model();
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

/// Finds out how long the recording goes on if the bus shows nothing meanwhile and there is no
/// other processor. Called after everything that may change the answer.
void look_ahead() {
  const Trigger& stop = monitor->options.stop;
  const Recorder& recorder = monitor->now->recorder;
  const bool quiet = !monitor->several() && monitor->phase == Phase::recording &&
                     recorder.active() && !monitor->sink.failed() && !monitor->stop_next &&
                     !recorder.stop_marker_seen();
  const bool counts = stop.kind == Trigger::Kind::count;
  monitor->quiet_until = !quiet ? 0 : counts ? stop.number : ~std::uint64_t{0};
  monitor->has_quick_accesses = quiet && recorder.has_quick_accesses();
  monitor->in_order = !recorder.has_code_cache();
}

/// Whether so many instructions can begin without a check of each.
inline bool goes_on(std::uint64_t instructions) {
  return monitor->now->recorder.instructions() + instructions < monitor->quiet_until;
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

/// Whether the recorder has to be told of instructions that were begun.
bool is_behind(const Processor& now) {
  return now.next_begun != nullptr && now.next_begun <= *now.begun;
}

/// How many bytes accesses have that the emulator describes by this number. It is asked once for
/// each: a call of it takes as long as a good part of what is done for most accesses.
struct KnownSize {
  std::uint64_t info = ~std::uint64_t{0};  ///< none
  unsigned bytes = 0;
};
/// The upper half of the number says whether it is a load.
inline KnownSize& place_of_size(qemu_plugin_meminfo_t info) {
  static std::array<KnownSize, 1024> known;
  return known[(info ^ info >> 8) % known.size()];
}
unsigned size_of(qemu_plugin_meminfo_t info) {
  KnownSize& its = place_of_size(info);
  if (its.info != info) its = {info, 1u << qemu_plugin_mem_size_shift(info)};
  return its.bytes;
}

/// An access as the emulator reports it.
struct ReportedAccess {
  const qemu_plugin_hwaddr* where = nullptr;  ///< nullptr: it does not say
  bool device = false;
  unsigned size = 0;
  std::uint64_t address = 0;

  /// Whether the recorder alone decides if its short way is enough.
  bool is_quick() const {
    constexpr unsigned kMostBytes = 8;
    return monitor->quiet_until != 0 && !device && size <= kMostBytes;
  }
};

inline ReportedAccess access_at(qemu_plugin_meminfo_t info, std::uint64_t linear) {
  const qemu_plugin_hwaddr* const where = qemu_plugin_get_hwaddr(info, linear);
  if (where == nullptr) return {};
  return {where, qemu_plugin_hwaddr_is_io(where), size_of(info),
          qemu_plugin_hwaddr_phys_addr(where)};
}

/// Whether this phase looks at accesses. First finds the processor that makes one.
inline bool watches_accesses() {
  if (monitor->quiet_until != 0) return true;
  if (monitor->phase != Phase::recording && monitor->phase != Phase::armed) return false;
  if (monitor->several() && !monitor->now->registers.is_current()) hear();
  return true;
}

/// The value as memory has it. The emulator gives that of the register.
inline qemu_plugin_mem_value value_in_memory(qemu_plugin_meminfo_t info, const Insn& insn,
                                             const ReportedAccess& access) {
  qemu_plugin_mem_value value = qemu_plugin_mem_get_value(info);
  if (insn.what.reverses) {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(&value.data);
    std::reverse(bytes, bytes + access.size);
  }
  return value;
}

std::span<const std::uint8_t> bytes_of(const qemu_plugin_mem_value& value,
                                       const ReportedAccess& access) {
  return {reinterpret_cast<const std::uint8_t*>(&value.data), access.size};
}

/// catch_up(), by a short way where there is one.
inline void catch_up_quickly() {
  Processor& now = *monitor->now;
  if (!is_behind(now)) return;
  const Insn* const last = *now.begun;
  const auto behind = static_cast<std::uint64_t>(last - now.next_begun) + 1;
  if (!goes_on(behind) || !now.recorder.pass(*now.next_begun, *last)) return catch_up();
  now.next_begun = last + 1;
}

/// An access that the recorder may take by a short way, and may be told later of what began.
class QuickAccess {
 public:
  [[gnu::always_inline]] QuickAccess(TaggedInsn insn, bool store, std::uint64_t linear,
                                     unsigned size)
      : insn_(insn), linear_(linear), size_(size), store_(store) {
    const Processor& now = *monitor->now;
    constexpr unsigned kMostBytes = 8;
    if (!monitor->has_quick_accesses || *now.begun != insn.insn() || size > kMostBytes) return;
    told_ = now.next_begun == nullptr || now.next_begun > insn.insn();
    page_ = now.recorder.quick_page(insn, store, linear, size, told_);
  }
  /// Whether it is taken by the shortest way.
  [[gnu::always_inline]] bool is_taken_at_once() const {
    return page_ != nullptr && !monitor->in_order &&
           monitor->now->recorder.access_quickly(insn_, *page_, store_, linear_, size_);
  }
  /// Whether it is taken otherwise.
  bool is_taken() const {
    if (page_ == nullptr) return false;
    Recorder& recorder = monitor->now->recorder;
    __builtin_prefetch(page_->in_ram.shadow + (linear_ & 0xfff));
    if (!told_) {
      const std::uint64_t number = page_->page;
      catch_up_quickly();
      recorder.settle();
      // Without paging, the page of what began may be held now in place of this one.
      if (!monitor->has_quick_accesses || page_->page != number) return false;
    }
    return monitor->in_order ? recorder.access_in_order(insn_, *page_, store_, linear_, size_)
                             : recorder.fill_quickly(insn_, *page_, store_, linear_, size_);
  }

 private:
  TaggedInsn insn_;
  std::uint64_t linear_;
  unsigned size_;
  bool store_, told_ = true;
  const HeldPage* page_ = nullptr;
};

/// Tells the recorder of what began before a store that RAM has already, as if RAM did not have it.
/// It may go on in another page.
void catch_up_before(std::uint64_t linear, std::uint64_t address,
                     std::span<const std::uint8_t> stored) {
  Recorder& recorder = monitor->now->recorder;
  const Insn &first = *monitor->now->next_begun, &last = **monitor->now->begun;
  const auto in_page = stored.first(std::min<std::size_t>(stored.size(), left_in_page(address)));
  const auto behind = stored.subspan(in_page.size());
  const auto second = behind.empty() ? std::nullopt : recorder.locate(linear + in_page.size());
  const auto size = [](std::span<const std::uint8_t> bytes) {
    return static_cast<unsigned>(bytes.size());
  };
  const bool out = recorder.take_out(address, size(in_page), first, last);
  const bool out_behind = second && recorder.take_out(*second, size(behind), first, last);
  catch_up_quickly();
  if (out) recorder.put_back(address, in_page);
  if (out_behind) recorder.put_back(*second, behind);
}

/// An instruction starts that the recorder must look at by itself.
void start_watched(const Insn& insn) {
  if (monitor->phase != Phase::recording && monitor->phase != Phase::armed) return;
  hear();
  if (is_behind(*monitor->now)) catch_up();
  monitor->now->recorder.settle();
  start(insn);
  look_ahead();
}

/// The recorder shows an access.
void show(const Insn& insn, bool store, std::uint64_t linear, const ReportedAccess& access,
          std::span<const std::uint8_t> bytes) {
  Recorder& recorder = monitor->now->recorder;
  if (access.is_quick() && recorder.access_plainly(insn, store, linear, access.address, bytes))
    return;
  recorder.access(insn, store, linear, access.address, access.device, bytes);
  look_ahead();
}

}  // namespace

void catch_up() {
  Processor& now = *monitor->now;
  if (!is_behind(now)) return;
  const Insn* const last = *now.begun;
  if (goes_on(static_cast<std::uint64_t>(last - now.next_begun) + 1)) {
    if (now.recorder.follow_plainly(now.next_begun, last)) {
      now.next_begun = last + 1;
      return;
    }
    now.recorder.follow_all(now.next_begun, last);
    now.next_begun = last + 1;
    return look_ahead();
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
  look_ahead();
}

void on_start(unsigned, void* user) {
  // It is seldom in the host's cache, nor is what follows it; meanwhile there is something to do.
  const Insn* const first = static_cast<const Insn*>(user);
  __builtin_prefetch(first);
  __builtin_prefetch(first + 1);
  __builtin_prefetch(first + 2);
  const Insn& insn = *first;
  if (monitor->quiet_until != 0) catch_up_quickly();
  Recorder& recorder = monitor->now->recorder;
  const bool started =
      !insn.waits_for_stop && goes_on(1) &&
      (insn.ends_plainly ? recorder.start_plainly(insn, monitor->has_quick_accesses)
                         : recorder.iterate_plainly(insn));
  if (started)
    recorder.forget_quick_accesses();
  else
    start_watched(insn);
  if (monitor->phase == Phase::done) return;
  *monitor->now->begun = &insn;
  monitor->now->next_begun = &insn + 1;
  if (monitor->several() && insn.first_in_block && monitor->phase == Phase::recording)
    end_turn_in_time();
}

namespace {

/// All that is not taken at once.
[[gnu::noinline]] void load(void* user, qemu_plugin_meminfo_t info, std::uint64_t linear) {
  const TaggedInsn tagged(user);
  if (QuickAccess(tagged, false, linear, size_of(info)).is_taken() || !watches_accesses()) return;
  const Insn& insn = *tagged.insn();
  const ReportedAccess access = access_at(info, linear);
  catch_up_quickly();
  monitor->now->recorder.settle();
  if (access.where == nullptr || monitor->phase != Phase::recording) return;
  if (access.is_quick() &&
      monitor->now->recorder.load_unseen(insn, linear, access.address, access.size))
    return;
  const qemu_plugin_mem_value value = value_in_memory(info, insn, access);
  show(insn, false, linear, access, bytes_of(value, access));
}

[[gnu::noinline]] void store(void* user, qemu_plugin_meminfo_t info, std::uint64_t linear) {
  const TaggedInsn tagged(user);
  if (QuickAccess(tagged, true, linear, size_of(info)).is_taken() || !watches_accesses()) return;
  const Insn& insn = *tagged.insn();
  const ReportedAccess access = access_at(info, linear);
  if (access.where == nullptr) {
    catch_up();
    return monitor->now->recorder.settle();
  }
  const qemu_plugin_mem_value value = value_in_memory(info, insn, access);
  const auto bytes = bytes_of(value, access);
  if (access.device)
    catch_up();
  else if (is_behind(*monitor->now))
    catch_up_before(linear, access.address, bytes);
  monitor->now->recorder.settle();
  if (monitor->phase == Phase::armed) return watch_for_marker(access.address, bytes);
  if (access.is_quick() && monitor->now->recorder.store_unseen(insn, linear, access.address, bytes))
    return;
  if (monitor->phase == Phase::recording) show(insn, true, linear, access, bytes);
}

}  // namespace

// These are called at each access: what they take at once needs no call of anything.
void on_load(unsigned, qemu_plugin_meminfo_t info, std::uint64_t linear, void* user) {
  const KnownSize& size = place_of_size(info);
  if (size.info == info &&
      QuickAccess(TaggedInsn(user), false, linear, size.bytes).is_taken_at_once())
    return;
  load(user, info, linear);
}

void on_store(unsigned, qemu_plugin_meminfo_t info, std::uint64_t linear, void* user) {
  const KnownSize& size = place_of_size(info);
  if (size.info == info &&
      QuickAccess(TaggedInsn(user), true, linear, size.bytes).is_taken_at_once())
    return;
  store(user, info, linear);
}

}  // namespace citcat::monitor
