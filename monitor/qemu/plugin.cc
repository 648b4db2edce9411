// The virtual bus monitor inside QEMU: its installation, and the emulator's callbacks that belong
// to no block.
//
// Some functions of QEMU that are no part of its plugin interface are used, found by name at start:
// qemu_get_cpu and cpu_dump_state, for the hidden parts of segment registers, cpu_exit and
// current_cpu, where several processors take turns, and those of physical_memory.h, for ROM and for
// memory beyond 4 GiB.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <utility>

#include "monitor/qemu/monitor.h"
#include "monitor/qemu/physical_memory.h"
#include "monitor/qemu/recorded_window.h"
#include "monitor/qemu/translation.h"

namespace citcat::monitor {
namespace {

/// Versions of QEMU's interface: what QEMU 9.2 to 10.1 take, and what QEMU 11 wants.
constexpr int kOldVersion = 4, kNewVersion = 7;

/// Whether what is left in the log says so.
bool has_shut_down() {
  LoggedEvent event;
  LogItem item = LogItem::event;
  while (item != LogItem::nothing && item != LogItem::shutdown) item = monitor->log.next(event);
  return item == LogItem::shutdown;
}

void on_exit(std::uintptr_t, std::uintptr_t) {
  if (monitor->now->begun != nullptr && monitor->phase == Phase::recording) {
    const AsCurrent as(*monitor->now);
    catch_up();
  }
  if (monitor->phase == Phase::recording) end_recording(has_shut_down() ? "shutdown" : "exit");
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

}  // namespace

void register_callbacks(std::uintptr_t, std::uintptr_t) {
  qemu_plugin_register_atexit_cb(monitor->id, on_exit, &ours);
  if (monitor->phase != Phase::done)
    qemu_plugin_register_vcpu_tb_trans_cb(monitor->id, on_translate, &ours);
}

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
  const GuestMemory::PhysicalAccess access = find_physical_access();
  if (access == nullptr) {
    std::fprintf(stderr,
                 "citcat-monitor: error: this QEMU exports neither cpu_physical_memory_rw nor "
                 "physical_memory_read and physical_memory_write\n");
    return -1;
  }
  monitor->memory.set_physical_access(access);
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
