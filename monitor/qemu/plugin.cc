// The virtual bus monitor inside QEMU: waits for its trigger with as little instrumentation as the
// trigger needs, then has every instruction and every access reported to the recorder.
//
// Some functions of QEMU that are no part of its plugin interface are used, found by name at start:
// qemu_get_cpu and cpu_dump_state, for the hidden parts of segment registers,
// cpu_physical_memory_rw, for ROM, cpu_exit and current_cpu, where several processors take turns,
// and cpu_physical_memory_map and _unmap, for memory beyond 4 GiB.

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/log/turns.h"
#include "monitor/options/plugin_options.h"
#include "monitor/options/process_watch.h"
#include "monitor/options/trigger.h"
#include "monitor/qemu/qemu_plugin_api.h"
#include "monitor/qemu/qemu_registers.h"
#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

/// Versions of QEMU's interface: what QEMU 9.2 to 10.1 take, and what QEMU 11 wants.
constexpr int kOldVersion = 4, kNewVersion = 7;

/// Memory by its linear address, without a trace on the bus or in a TLB.
bool read_linear(std::uint64_t linear, std::span<std::uint8_t> bytes) {
  static GByteArray* const buffer = g_byte_array_new();
  if (!qemu_plugin_read_memory_vaddr(linear, buffer, bytes.size())) return false;
  std::memcpy(bytes.data(), buffer->data, bytes.size());
  return true;
}

// ---- the monitor
// ---------------------------------------------------------------------------------

/// waiting: only the trigger is watched. armed: everything is instrumented, the recording begins at
/// the next instruction that may begin one. done: nothing is instrumented any more.
enum class Phase { waiting, armed, recording, done };

struct Monitor;

/// One of the machine's processors.
struct Processor {
  Processor(Monitor& monitor, unsigned its, bool several);

  unsigned number;
  QemuRegisters registers;
  std::optional<InterruptLog> part;  ///< of several: what is its own of the log
  Recorder recorder;
  /// The last instruction that was begun, stored by the emulator's own code; and the next one of
  /// its block that the recorder has not been told of.
  const Insn* volatile* begun = nullptr;
  const Insn* next_begun = nullptr;
  std::uint64_t turn_ends = 0;                      ///< when it has done so many instructions
  std::uint32_t asked_leaf = 0, asked_subleaf = 0;  ///< of CPUID, while waiting
};

struct Monitor {
  Monitor(PluginOptions given, unsigned count)
      : options(std::move(given)),
        sink(options.data, options.control),
        processors(make_processors(count)),
        now(processors[0].get()),
        start_watch(options.start),
        stop_watch(options.stop),
        start_process(options.start, now->registers, read_linear),
        stop_process(options.stop, now->registers, read_linear),
        started(options.before) {
    if (several()) share_bus();
  }
  std::vector<std::unique_ptr<Processor>> make_processors(unsigned count);
  void share_bus();

  PluginOptions options;
  qemu_plugin_id_t id = 0;
  Phase phase = Phase::waiting;
  GuestMemory memory;
  RecordSink sink;
  InterruptLog log;
  std::vector<std::unique_ptr<Processor>> processors;
  Processor* now = nullptr;  ///< the one whose turn it is, as far as we were told
  bool several() const { return processors.size() > 1; }
  TurnLength turn_length;
  PortWatch start_watch, stop_watch;
  // Registers are asked for by the number that all processors have for them.
  ProcessWatch start_process, stop_process;
  bool watches_processes() const { return start_process.wanted() || stop_process.wanted(); }
  std::uint64_t started;     ///< instructions while waiting for a count
  bool knows_model = false;  ///< where a run was taken up
  std::uint32_t window = 0;  ///< the driver's, when its marker was stored
  bool begin_next = false;   ///< the marker was stored: the next instruction is the first
  qemu_plugin_scoreboard* score = nullptr;  ///< Processor::begun
  bool stop_next = false;
  bool knows_high_memory = false;
};

Processor::Processor(Monitor& monitor, unsigned its, bool several)
    : number(its),
      registers(its),
      part(several ? std::optional<InterruptLog>(std::in_place, monitor.log) : std::nullopt),
      recorder(monitor.memory, monitor.sink, part ? *part : monitor.log, registers,
               monitor.options.cache) {}

std::vector<std::unique_ptr<Processor>> Monitor::make_processors(unsigned count) {
  std::vector<std::unique_ptr<Processor>> all;
  for (unsigned n = 0; n < count; ++n)
    all.push_back(std::make_unique<Processor>(*this, n, count > 1));
  return all;
}

void Monitor::share_bus() {
  sink.show_processors();
  for (const auto& one : processors) {
    std::vector<BusModel*> others;
    for (const auto& other : processors)
      if (other != one) others.push_back(&other->recorder.bus());
    one->recorder.share(one->number, std::move(others));
  }
}

Monitor* monitor;

/// What callbacks of version 7 bring back: in earlier versions nothing else has this value.
char ours;
bool is_ours(std::uintptr_t word) { return word == reinterpret_cast<std::uintptr_t>(&ours); }

void register_callbacks(std::uintptr_t, std::uintptr_t);

/// Translates everything anew, with the instrumentation of the phase we are in.
void retranslate() { qemu_plugin_reset(monitor->id, register_callbacks, &ours); }

void arm() {
  monitor->phase = Phase::armed;
  retranslate();
}

/// The totals of all processors.
Totals recorded() {
  Totals all;
  for (const auto& one : monitor->processors) all.add(one->recorder.totals());
  return all;
}

void end_recording(const std::string& reason) {
  if (!monitor->several()) return monitor->now->recorder.end(reason);
  for (const auto& one : monitor->processors) one->recorder.close(reason);
  recorded().say(reason, monitor->sink);
}

void finish(const std::string& reason) {
  end_recording(reason);
  monitor->phase = Phase::done;
  retranslate();
  // QEMU takes SIGTERM as a request to shut down in order.
  if (monitor->options.quit) kill(getpid(), SIGTERM);
}

/// There can be no recording of this machine, and no use in its going on.
void stop_without_recording(const std::string& why) {
  monitor->sink.say("error " + why);
  monitor->phase = Phase::done;
  kill(getpid(), SIGTERM);
}

// ---- turns
// ---------------------------------------------------------------------------------------

/// While there is one, the emulator takes this processor for the one that it runs.
class AsCurrent {
 public:
  explicit AsCurrent(Processor& one) : before_(one.registers.make_current()) {}
  ~AsCurrent() { QemuRegisters::restore_current(before_); }
  AsCurrent(const AsCurrent&) = delete;
  AsCurrent& operator=(const AsCurrent&) = delete;

 private:
  void* before_;
};

void catch_up();

/// Gives what is new in the log to those whose it is. Those whose turn is over show it at once.
void share_log() {
  if (!monitor->log.pending()) return;
  std::vector<Candidate> candidates;
  for (const auto& one : monitor->processors)
    candidates.push_back(candidate_of(one->registers.state(), one->recorder.waits()));
  LoggedEvent event;
  while (monitor->log.pending()) {
    const LogItem item = monitor->log.next(event);
    if (item == LogItem::nothing) break;
    if (item == LogItem::reset && event.processor != 0) {
      if (event.processor < monitor->processors.size())
        monitor->processors[event.processor]->recorder.initialised();
      continue;
    }
    const auto number = item == LogItem::event ? whose(event, candidates) : 0;
    if (!number) {
      monitor->now->recorder.refuse(
          "the emulator does not say which processor an interrupt or exception belongs to");
      return;
    }
    monitor->processors[*number]->part->give(item, event);
  }
}

/// Another processor's turn begins, of several. What the others have done is shown first.
void take_turn(Processor& next) {
  Processor& before = *monitor->now;
  if (&before != &next) {
    const AsCurrent as(before);
    catch_up();
  }
  if (monitor->phase != Phase::recording) return;
  share_log();
  for (const auto& one : monitor->processors) {
    if (one.get() == &next || (one.get() != &before && !one->part->pending())) continue;
    const AsCurrent as(*one);
    one->recorder.resume();
    one->recorder.rest();
    if (!one->recorder.active()) return finish("error");
  }
  monitor->now = &next;
  next.recorder.resume();
}

/// The processor that the emulator runs. In one thread, QEMU 10 gives callbacks the number of the
/// one for which their block was translated (accel/tcg/plugin-gen.c, gen_cpu_index()).
Processor& running() {
  if (monitor->several() && !monitor->now->registers.is_current())
    for (const auto& one : monitor->processors)
      if (one->registers.is_current()) return *one;
  return *monitor->now;
}

/// Something happens: whose turn it is.
void hear() {
  if (!monitor->several()) return;
  Processor& one = running();
  if (monitor->phase != Phase::recording)
    monitor->now = &one;
  else if (&one != monitor->now || monitor->log.pending())
    take_turn(one);
}

/// Turns are kept short, so that processors meet as they do on a real bus.
void end_turn_in_time() {
  Processor& one = *monitor->now;
  if (one.recorder.instructions() < one.turn_ends) return;
  one.turn_ends = one.recorder.instructions() + monitor->turn_length.next();
  one.registers.stop_soon();
}

// ---- waiting
// -------------------------------------------------------------------------------------

void on_wbinvd(unsigned, void*) {
  hear();
  if (monitor->phase == Phase::waiting &&
      static_cast<std::uint32_t>(monitor->now->registers.gpr(3)) == CITCAT_ARM_VALUE)
    arm();
}

void on_address(unsigned, void*) {
  if (monitor->phase == Phase::waiting) arm();
}

void on_count(unsigned, void* user) {
  hear();
  monitor->started += reinterpret_cast<std::uintptr_t>(user);
  if (monitor->phase == Phase::waiting && monitor->started >= monitor->options.start.number) arm();
}

bool is_trigger_port_write(PortWatch& watch, const Insn& insn) {
  const std::uint32_t port = insn.what.port_in_dx
                                 ? static_cast<std::uint16_t>(monitor->now->registers.gpr(2))
                                 : insn.what.port;
  return watch.write(port, static_cast<std::uint32_t>(monitor->now->registers.gpr(0)),
                     insn.what.operand_bytes);
}

void on_port_write(unsigned, void* user) {
  hear();
  if (monitor->phase == Phase::waiting &&
      is_trigger_port_write(monitor->start_watch, *static_cast<const Insn*>(user)))
    arm();
}

CodeSize size_from(void* user) {
  return static_cast<CodeSize>(reinterpret_cast<std::uintptr_t>(user));
}
void* as_user_data(CodeSize size) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(size));
}

void on_user_block(unsigned, void* code) {
  hear();
  if (monitor->phase != Phase::waiting) return;
  (void)monitor->stop_process.block(size_from(code));
  if (monitor->start_process.block(size_from(code))) arm();
}

void on_system_call(unsigned, void* code) {
  hear();
  if (monitor->phase != Phase::waiting) return;
  (void)monitor->stop_process.call(size_from(code));
  if (monitor->start_process.call(size_from(code))) arm();
}

void on_wrmsr(unsigned, void*) {
  hear();
  const auto low = [](unsigned n) {
    return static_cast<std::uint32_t>(monitor->now->registers.gpr(n));
  };
  monitor->now->recorder.facts().msrs[low(1)] = std::uint64_t{low(2)} << 32 | low(0);
}

/// XSETBV is about to be executed. It takes what a processor takes: of register 0, at level 0, with
/// the component that XCR0 always has (Intel SDM vol. 2, XSETBV).
void on_xsetbv(unsigned, void*) {
  hear();
  const auto low = [](unsigned n) {
    return static_cast<std::uint32_t>(monitor->now->registers.gpr(n));
  };
  if (low(1) != 0 || (low(0) & kX87State) == 0 || monitor->now->registers.at_user_level()) return;
  monitor->now->recorder.facts().xcr0 = std::uint64_t{low(2)} << 32 | low(0);
}

/// CPUID is about to be executed.
void on_cpuid(unsigned, void*) {
  hear();
  monitor->now->asked_leaf = static_cast<std::uint32_t>(monitor->now->registers.gpr(0));
  monitor->now->asked_subleaf = static_cast<std::uint32_t>(monitor->now->registers.gpr(1));
}

/// It has been, and the next instruction of the block is about to be.
void on_cpuid_answer(unsigned, void*) {
  hear();
  const auto low = [](unsigned n) {
    return static_cast<std::uint32_t>(monitor->now->registers.gpr(n));
  };
  monitor->now->recorder.facts().note_cpuid(monitor->now->asked_leaf, monitor->now->asked_subleaf,
                                            {low(0), low(3), low(1), low(2)});
}

/// What a recording without the driver begins with, since only instructions tell of it.
void watch_model(qemu_plugin_insn* handle, const Insn& insn, InsnKind before) {
  if (insn.what.kind == InsnKind::wrmsr)
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_wrmsr, QEMU_PLUGIN_CB_R_REGS, nullptr);
  if (!monitor->now->registers.has_long_mode()) return;
  if (before == InsnKind::cpuid)
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_cpuid_answer, QEMU_PLUGIN_CB_R_REGS, nullptr);
  if (insn.what.kind == InsnKind::cpuid)
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_cpuid, QEMU_PLUGIN_CB_R_REGS, nullptr);
}

void watch_for_start(qemu_plugin_tb* block, qemu_plugin_insn* handle, InsnKind before,
                     std::unique_ptr<Insn> insn) {
  const Trigger& start = monitor->options.start;
  if (insn->what.kind == InsnKind::xsetbv)
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_xsetbv, QEMU_PLUGIN_CB_R_REGS, nullptr);
  // The driver dumps these itself.
  if (start.kind != Trigger::Kind::driver) watch_model(handle, *insn, before);
  if (insn->user && insn->first_in_block && monitor->watches_processes())
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_user_block, QEMU_PLUGIN_CB_R_REGS,
                                           as_user_data(insn->code));
  if (insn->user && insn->what.calls_system && monitor->watches_processes())
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_system_call, QEMU_PLUGIN_CB_R_REGS,
                                           as_user_data(insn->code));
  switch (start.kind) {
    case Trigger::Kind::driver:
      if (insn->what.kind == InsnKind::wbinvd)
        qemu_plugin_register_vcpu_insn_exec_cb(handle, on_wbinvd, QEMU_PLUGIN_CB_R_REGS, nullptr);
      break;
    case Trigger::Kind::address:
      if (insn->linear == start.number)
        qemu_plugin_register_vcpu_insn_exec_cb(handle, on_address, QEMU_PLUGIN_CB_NO_REGS, nullptr);
      break;
    case Trigger::Kind::count:
      if (insn->first_in_block)
        qemu_plugin_register_vcpu_tb_exec_cb(
            block, on_count, QEMU_PLUGIN_CB_NO_REGS,
            reinterpret_cast<void*>(qemu_plugin_tb_n_insns(block)));
      break;
    case Trigger::Kind::port:
    case Trigger::Kind::console:
      if (insn->what.kind == InsnKind::out)
        qemu_plugin_register_vcpu_insn_exec_cb(handle, on_port_write, QEMU_PLUGIN_CB_R_REGS,
                                               insn.release());
      break;
    case Trigger::Kind::process:
    case Trigger::Kind::exit:
    case Trigger::Kind::reset:
    case Trigger::Kind::none:
      break;
  }
}

// ---- recording
// -----------------------------------------------------------------------------------

bool write_file(const std::string& path, const void* data, std::size_t size) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written = std::fwrite(data, 1, size, file) == size;
  return std::fclose(file) == 0 && written;
}

/// For tests of the driver: what it dumped beside what the emulator says, at the same instruction.
void write_probe() {
  const std::string text = monitor->now->registers.dump();
  const std::string& path = monitor->options.probe;
  const GuestMemory& memory = monitor->memory;
  const bool good =
      write_file(path + ".txt", text.data(), text.size()) &&
      write_file(path + ".bin", memory.live(monitor->window), CITCAT_WINDOW_MIN_BYTES) &&
      write_file(path + ".ram", memory.live(0), memory.low_bytes());
  monitor->sink.say(good ? "probe written" : "error the probe could not be written");
}

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

/// What an instruction writes that runs between the trigger and the beginning.
void note_model(const Insn& insn) {
  if (insn.what.kind == InsnKind::wrmsr) on_wrmsr(0, nullptr);
  if (insn.what.kind == InsnKind::xsetbv) on_xsetbv(0, nullptr);
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

/// Tells the recorder of the instructions that were begun since it was last told of one. All of
/// them are of one block, and ended plainly.
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

/// Callbacks that may look at registers cost more: only where something may be looked at.
bool needs_registers(const Insn& insn, const Insn* before) {
  return insn.first_in_block || insn.what.calls_system || insn.what.kind != InsnKind::plain ||
         (before != nullptr &&
          (before->what.kind != InsnKind::plain || before->what.loaded_segments != 0));
}

/// Whether the recording may end before an instruction for what it is.
bool may_be_last(const Insn& insn) {
  const Trigger& stop = monitor->options.stop;
  const bool process = stop.kind == Trigger::Kind::process || stop.kind == Trigger::Kind::exit;
  return (stop.kind == Trigger::Kind::address && insn.linear == stop.number) ||
         (process && insn.user && (insn.first_in_block || insn.what.calls_system));
}

/// The recorder may be told later that such an instruction was begun.
bool may_wait(const Insn& insn, const Insn* before) {
  return !needs_registers(insn, before) && insn.ends_plainly && !insn.waits_for_stop &&
         monitor->phase == Phase::recording;
}

// ---- translation
// ---------------------------------------------------------------------------------

Insn describe(qemu_plugin_insn* handle, bool first_in_block, bool user, CodeSize code) {
  Insn insn;
  insn.linear = qemu_plugin_insn_vaddr(handle);
  insn.code = code;
  insn.physical = monitor->memory.address_of(qemu_plugin_insn_haddr(handle));
  insn.size = static_cast<std::uint8_t>(
      qemu_plugin_insn_data(handle, insn.bytes.data(), insn.bytes.size()));
  insn.first_in_block = first_in_block;
  insn.user = user;
  insn.what = classify({insn.bytes.data(), insn.size}, code);
  return insn;
}

/// While waiting for no process: 16-bit code of protected mode is taken for 32-bit code,
/// compatibility mode for 64-bit mode. No more than the size of what it writes to ports is seen
/// otherwise.
CodeSize likely_code_size(QemuRegisters& registers) {
  if (registers.in_long_mode()) return CodeSize::bits64;
  return registers.in_real_mode() ? CodeSize::bits16 : CodeSize::bits32;
}

/// Once there is a machine, before the first address of its RAM is asked for.
bool find_high_memory() {
  if (std::exchange(monitor->knows_high_memory, true)) return true;
  const auto map =
      reinterpret_cast<GuestMemory::Map>(dlsym(RTLD_DEFAULT, "cpu_physical_memory_map"));
  const auto unmap =
      reinterpret_cast<GuestMemory::Unmap>(dlsym(RTLD_DEFAULT, "cpu_physical_memory_unmap"));
  return monitor->memory.find_high(map, unmap);
}

/// Has a block reported to the recorder.
void follow_block(qemu_plugin_tb* block, bool user, CodeSize code) {
  const std::size_t count = qemu_plugin_tb_n_insns(block);
  // Instructions are kept for good: blocks live until they are translated anew.
  Insn* const insns = new Insn[count];
  for (std::size_t n = 0; n < count; ++n) {
    qemu_plugin_insn* const handle = qemu_plugin_tb_get_insn(block, n);
    Insn* const insn = insns + n;
    const Insn* const before = n == 0 ? nullptr : insn - 1;
    *insn = describe(handle, n == 0, user, code);
    complete(*insn, before, monitor->options.cache);
    insn->waits_for_stop = may_be_last(*insn);
    // Such a store is made for the processor for which the block is translated: see running().
    insn->waits = !monitor->several() && may_wait(*insn, before);
    if (insn->waits) {
      qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(handle, QEMU_PLUGIN_INLINE_STORE_U64,
                                                          {monitor->score, 0},
                                                          reinterpret_cast<std::uintptr_t>(insn));
    } else {
      const auto flags =
          needs_registers(*insn, before) ? QEMU_PLUGIN_CB_R_REGS : QEMU_PLUGIN_CB_NO_REGS;
      qemu_plugin_register_vcpu_insn_exec_cb(handle, on_start, flags, insn);
    }
    const bool looks = insn->what.kind == InsnKind::x87 || moves_environment(insn->what.kind) ||
                       loads_code_segment(insn->what.kind);
    const auto access_flags = looks ? QEMU_PLUGIN_CB_R_REGS : QEMU_PLUGIN_CB_NO_REGS;
    qemu_plugin_register_vcpu_mem_cb(handle, on_access, access_flags, QEMU_PLUGIN_MEM_RW, insn);
  }
  complete_block({insns, count});
}

/// `first`, `second`: our number and the block, or the block and our word.
void on_translate(std::uintptr_t first, std::uintptr_t second) {
  auto* const block = reinterpret_cast<qemu_plugin_tb*>(is_ours(second) ? first : second);
  if (monitor->phase == Phase::done) return;
  if (!find_high_memory())
    return stop_without_recording(
        "this QEMU does not say where its RAM is; choose no more than 2 GiB of it");
  const std::size_t count = qemu_plugin_tb_n_insns(block);
  // A block is translated when it is about to run, at the level it runs at.
  QemuRegisters& registers = running().registers;
  const bool user = (monitor->phase != Phase::waiting || monitor->watches_processes()) &&
                    registers.at_user_level();
  const CodeSize code = monitor->phase == Phase::waiting && !user ? likely_code_size(registers)
                                                                  : registers.code_size();
  InsnKind kind_before = InsnKind::plain;
  if (monitor->phase != Phase::waiting) return follow_block(block, user, code);
  for (std::size_t n = 0; n < count; ++n) {
    qemu_plugin_insn* const handle = qemu_plugin_tb_get_insn(block, n);
    auto insn = std::make_unique<Insn>(describe(handle, n == 0, user, code));
    const InsnKind kind = insn->what.kind;
    watch_for_start(block, handle, kind_before, std::move(insn));
    kind_before = kind;
  }
}

void on_exit(std::uintptr_t, std::uintptr_t) {
  if (monitor->now->begun != nullptr && monitor->phase == Phase::recording) {
    const AsCurrent as(*monitor->now);
    catch_up();
  }
  if (monitor->phase == Phase::recording) end_recording("exit");
}

/// `first`, `second`: our number and that of the processor, or the processor's and our word.
void on_processor(std::uintptr_t first, std::uintptr_t second) {
  const auto number = static_cast<unsigned>(is_ours(second) ? first : second);
  if (number >= monitor->processors.size())
    return stop_without_recording("a processor was added, which this monitor does not record");
  // The scoreboard may have been moved to make room for this one.
  for (const auto& one : monitor->processors)
    if (one->number <= number)
      one->begun = static_cast<const Insn* volatile*>(
          qemu_plugin_scoreboard_find(monitor->score, one->number));
  if (number == 0 && !monitor->memory.find(monitor->options.ram))
    stop_without_recording("the guest's RAM is not in one memory backend named " +
                           monitor->options.ram);
  else if (!monitor->processors[number]->registers.find_registers())
    stop_without_recording("this QEMU does not show the registers of an x86 processor");
}

void register_callbacks(std::uintptr_t, std::uintptr_t) {
  qemu_plugin_register_atexit_cb(monitor->id, on_exit, &ours);
  if (monitor->phase != Phase::done)
    qemu_plugin_register_vcpu_tb_trans_cb(monitor->id, on_translate, &ours);
}

}  // namespace
}  // namespace citcat::monitor

extern "C" {

__attribute__((visibility("default"))) int qemu_plugin_version = citcat::monitor::kOldVersion;

/// Runs before QEMU looks at the version: only a new QEMU has a function to set the PC.
__attribute__((constructor)) static void choose_version() {
  if (dlsym(RTLD_DEFAULT, "qemu_plugin_set_pc") != nullptr)
    qemu_plugin_version = citcat::monitor::kNewVersion;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const qemu_info_t* info, int argc,
                                                               char** argv) {
  using namespace citcat::monitor;
  PluginOptions options;
  for (int n = 0; n < argc; ++n)
    if (!parse_plugin_option(argv[n], options)) {
      std::fprintf(stderr, "citcat-monitor: error: option %s is not understood\n", argv[n]);
      return -1;
    }
  const int count = info->system_emulation ? info->system.smp_vcpus : 0;
  if (count != options.processors || count < 1 || count > static_cast<int>(kMostProcessors)) {
    std::fprintf(stderr,
                 "citcat-monitor: error: expected %d processors, of %u at most; the machine has "
                 "%d\n",
                 options.processors, kMostProcessors, count);
    return -1;
  }
  if (count > 1 && options.start.kind == Trigger::Kind::driver) {
    std::fprintf(stderr, "citcat-monitor: error: the driver dumps only one processor\n");
    return -1;
  }
  monitor = new Monitor(std::move(options), static_cast<unsigned>(count));
  monitor->id = id;
  monitor->score = qemu_plugin_scoreboard_new(sizeof(const Insn*));
  for (const auto& one : monitor->processors)
    if (!one->registers.find_functions(monitor->several())) {
      std::fprintf(
          stderr, "citcat-monitor: error: this QEMU does not export %s\n",
          monitor->several() ? "cpu_dump_state, cpu_exit and current_cpu" : "cpu_dump_state");
      return -1;
    }
  if (monitor->options.observe) monitor->memory.only_observe();
  monitor->memory.set_physical_access(
      reinterpret_cast<GuestMemory::PhysicalAccess>(dlsym(RTLD_DEFAULT, "cpu_physical_memory_rw")));
  if (!monitor->log.open(monitor->options.log)) {
    std::fprintf(stderr, "citcat-monitor: error: the log %s cannot be mapped\n",
                 monitor->options.log.c_str());
    return -1;
  }
  if (monitor->options.start.kind == Trigger::Kind::reset) monitor->phase = Phase::armed;
  qemu_plugin_register_vcpu_init_cb(id, on_processor, &ours);
  register_callbacks(0, 0);
  return 0;
}

}  // extern "C"
