#include "cli/capture_arguments.h"

#include "cli/parsing/command_description.h"
#include "formats/io/error.h"

namespace citcat {

void CaptureArguments::define_pins(const CommandParser& parser) {
  parser.add_option("--cpu", cpu, "Captured processor").type_name(type_of(cpu_model_names()));
  parser.add_option("--channels", channels, "Channel map: which channel is which pin")
      .type_name(kFileType);
}

void CaptureArguments::define(const CommandParser& parser) {
  std::vector<std::string> formats;
  for (const CaptureFormat& known : capture_formats()) formats.emplace_back(known.id);
  parser.add_option("--format", format, "Capture format (default: by content)")
      .type_name(type_of(formats));
  define_pins(parser);
}

CaptureOptions CaptureArguments::options() const {
  CaptureOptions options;
  options.format = format;
  options.channel_map_path = channels;
  if (cpu.empty()) return options;
  const auto model = parse_cpu_model(cpu);
  if (!model) throw UsageError("--cpu: expected " + cpu_model_names_text() + ", found " + cpu);
  options.cpu = *model;
  return options;
}

}  // namespace citcat
