#include "monitor/qemu/monitor.h"

#include <unistd.h>

#include <csignal>
#include <span>
#include <utility>

namespace citcat::monitor {

Monitor* monitor;
char ours;

namespace {

ProcessWatch::ReadMemory memory_of(Registers& registers) {
  return [&registers](std::uint64_t linear, std::span<std::uint8_t> bytes) {
    return registers.read_memory(linear, bytes);
  };
}

}  // namespace

Monitor::Monitor(PluginOptions given, unsigned count)
    : options(std::move(given)),
      sink(options.data, options.control, options.packs && count == 1),
      processors(make_processors(count)),
      now(processors[0].get()),
      start_watch(options.start),
      stop_watch(options.stop),
      start_process(options.start, now->registers, memory_of(now->registers)),
      stop_process(options.stop, now->registers, memory_of(now->registers)),
      started(options.before),
      several_(count > 1) {
  if (several()) share_bus();
}

Processor::Processor(Monitor& whole, unsigned its, bool several)
    : number(its),
      registers(its),
      part(several ? std::optional<InterruptLog>(std::in_place, whole.log) : std::nullopt),
      recorder(whole.memory, whole.sink, part ? *part : whole.log, registers, whole.options.cache) {
}

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

void retranslate() { qemu_plugin_reset(monitor->id, register_callbacks, &ours); }

void arm() {
  monitor->phase = Phase::armed;
  retranslate();
}

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

void stop_without_recording(const std::string& why) {
  monitor->sink.say("error " + why);
  monitor->phase = Phase::done;
  kill(getpid(), SIGTERM);
}

}  // namespace citcat::monitor
