#include "cli/commands/recording_symbols.h"

#include <fmt/format.h>

#include "events/archive/machine_file.h"
#include "events/archive/recording_file.h"
#include "events/names/kernel_place.h"

namespace citcat {
namespace {

/// Moves the kernel among the modules to where the recorded one lay, if it can be known.
void place_kernel(std::vector<SymbolModule>& modules, const RecordingFile& file,
                  const Console& console) {
  for (SymbolModule& module : modules) {
    const auto shift = kernel_shift(module, file.recording().initial);
    if (!shift || *shift == 0) continue;
    if (!is_kernel_shift(*shift)) {
      console.warn("--symbols: " + module.name +
                   " is another kernel than the recorded one, which enters by SYSENTER elsewhere");
      continue;
    }
    move_symbols(module, *shift, "--symbols");
    console.note(fmt::format("the recorded kernel lay {:#x} bytes from where {} was linked to",
                             *shift, module.name));
  }
}

}  // namespace

void add_symbols(std::vector<SymbolModule> modules, const std::string& archive,
                 const Console& console) {
  const std::optional<MachineFile> machine = MachineFile::find(archive);
  const RecordingFile first = RecordingFile::open(machine ? machine->name(0) : archive);
  place_kernel(modules, first, console);
  for (std::size_t i = 0; i < first.recordings(); ++i) {
    RecordingAppender appender(archive + "@" + std::to_string(i));
    appender.add_symbols(modules);
    appender.finish();
  }
}

}  // namespace citcat
