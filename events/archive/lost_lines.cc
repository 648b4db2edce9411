#include "events/archive/lost_lines.h"

#include <memory>
#include <vector>

#include "events/archive/container.h"
#include "events/archive/machine_file.h"
#include "events/processors/taken_lines.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

/// The lines, and the recordings that they are read from.
struct LostLines {
  LostLines(const MachineFile& machine, std::size_t processor)
      : files(open_processors(machine)),
        lines(shared_bus_of(machine, files), static_cast<std::uint8_t>(processor)) {}

  std::vector<RecordingFile> files;
  TakenLines lines;
};

}  // namespace

TakenLineReader lost_lines_of(const RecordingFile& file) {
  const std::string& path = file.container().path();
  if (file.recordings() < 2 || file.meta().evidence != EvidenceMode::full || path == "-" ||
      is_once_input(path))
    return {};
  const auto machine = MachineFile::find(path);
  if (!machine) return {};
  const auto lost = std::make_shared<LostLines>(*machine, file.number());
  return [lost](TakenLine& out) { return lost->lines.next(out); };
}

}  // namespace citcat
