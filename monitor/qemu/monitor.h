#pragma once
// The monitor inside the emulator: its processors, and how far it has got with a recording.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "monitor/bus/guest_memory.h"
#include "monitor/bus/record_sink.h"
#include "monitor/log/interrupt_log.h"
#include "monitor/log/turns.h"
#include "monitor/options/plugin_options.h"
#include "monitor/options/process_watch.h"
#include "monitor/qemu/qemu_plugin_api.h"
#include "monitor/qemu/qemu_registers.h"
#include "monitor/recorder/recorder.h"

namespace citcat::monitor {

/// waiting: only the trigger is watched. armed: everything is instrumented, the recording begins at
/// the next instruction that may begin one. done: nothing is instrumented any more.
enum class Phase { waiting, armed, recording, done };

struct Monitor;

/// One of the machine's processors.
struct Processor {
  Processor(Monitor& whole, unsigned its, bool several);

  unsigned number;
  QemuRegisters registers;
  std::optional<InterruptLog> part;  ///< of several: what is its own of the log
  Recorder recorder;
  /// The last instruction that was begun, stored by the emulator's own code; and the next one of
  /// its block that was not yet reported to the recorder.
  const Insn* volatile* begun = nullptr;
  const Insn* next_begun = nullptr;
  std::uint64_t turn_ends = 0;                      ///< when it has done so many instructions
  std::uint32_t asked_leaf = 0, asked_subleaf = 0;  ///< of CPUID, while waiting
};

struct Monitor {
  Monitor(PluginOptions given, unsigned count);
  std::vector<std::unique_ptr<Processor>> make_processors(unsigned count);
  void share_bus();

  PluginOptions options;
  qemu_plugin_id_t id = 0;
  Phase phase = Phase::waiting;
  GuestMemory memory;
  RecordSink sink;
  InterruptLog log;
  std::vector<std::unique_ptr<Processor>> processors;
  Processor* now = nullptr;  ///< the one whose turn it is, as far as we know
  bool several() const { return several_; }
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
  /// Until this many instructions are recorded, it need not be checked whether the recording goes
  /// on: see look_ahead(). 0: it must be checked for each.
  std::uint64_t quiet_until = 0;
  bool has_quick_accesses = false;  ///< of Recorder, where that is known as well
  bool in_order = false;            ///< they are taken in the order of what began
  bool knows_high_memory = false;

 private:
  const bool several_;
};

/// The only one, since the plugin was installed.
extern Monitor* monitor;

/// What callbacks of version 7 bring back: in earlier versions nothing else has this value.
extern char ours;
inline bool is_ours(std::uintptr_t word) { return word == reinterpret_cast<std::uintptr_t>(&ours); }

/// Asks for the callbacks of the phase we are in (plugin.cc).
void register_callbacks(std::uintptr_t, std::uintptr_t);
/// Has everything translated again, with the instrumentation of the current phase.
void retranslate();
/// The trigger has come.
void arm();
/// The totals of all processors.
Totals recorded();
void end_recording(const std::string& reason);
/// The recording ends, and with it all instrumentation.
void finish(const std::string& reason);
/// There can be no recording of this machine, and no use in its going on.
void stop_without_recording(const std::string& why);

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

}  // namespace citcat::monitor
