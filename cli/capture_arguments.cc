#include "cli/capture_arguments.h"

#include "formats/io/error.h"

namespace citcat {

void CaptureArguments::define_pins(CLI::App& app) {
  app.add_option("--cpu", cpu, "Captured processor: 8088, 286, 386, 486, pentium or p6");
  app.add_option("--channels", channels, "Channel map: which channel is which pin");
}

void CaptureArguments::define(CLI::App& app) {
  app.add_option("--format", format, "Capture format (default: by content)");
  define_pins(app);
}

CaptureOptions CaptureArguments::options() const {
  CaptureOptions options;
  options.format = format;
  options.channel_map_path = channels;
  if (cpu.empty()) return options;
  const auto model = parse_cpu_model(cpu);
  if (!model) throw UsageError("--cpu: expected 8088, 286, 386, 486, pentium or p6, found " + cpu);
  options.cpu = *model;
  return options;
}

}  // namespace citcat
