#include "tools/host/tool_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/io/atomic_file.h"
#include "formats/io/error.h"

namespace citcat::tools {

std::string tool_output(ToolOptions& options, const Setup& setup) {
  const std::string path = options.text("to", setup.output);
  if (setup.group.empty() || path.empty()) return path;
  if (output_kind(path) != OutputKind::replaced) {
    throw UsageError("--by writes a file for each group: expected the name of a file, found " +
                     path);
  }
  return grouped_path(path, setup.group);
}

void require_place_beside(const std::string& path, const std::string& tool) {
  if (path.empty() || output_kind(path) == OutputKind::replaced) return;
  throw UsageError(tool + " writes several files: expected the name of a file, found " + path);
}

std::string grouped_path(const std::string& path, const std::string& group) {
  const std::size_t folder = path.find_last_of('/');
  const std::size_t name = folder == std::string::npos ? 0 : folder + 1;
  const std::size_t ending = std::min(path.find('.', name), path.size());
  std::string mark = ".";
  for (const char c : group) {
    const bool has_a_place = c > ' ' && c < 0x7f && c != '/' && c != '%';
    mark += has_a_place ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return path.substr(0, ending) + mark + path.substr(ending);
}

}  // namespace citcat::tools
