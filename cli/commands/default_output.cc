#include "cli/commands/default_output.h"

#include <filesystem>
#include <system_error>

#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {

std::string default_output(const std::string& input, std::string_view ending) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(input, error)) {
    const bool is_path =
        input != "-" && !is_once_input(input) && input.find('@') == std::string::npos;
    if (is_path && !fs::exists(input, error)) {
      throw IoError(input + ": cannot open: No such file or directory");
    }
    throw UsageError("--output is required, because " + input + " is not a file");
  }
  fs::path name = fs::path(input).filename();
  for (const std::string_view compressed : {".zst", ".gz", ".xz", ".bz2"}) {
    if (name.extension() == compressed) name = name.stem();
  }
  const std::string output = name.stem().string() + std::string(ending);
  if (fs::symlink_status(output, error).type() != fs::file_type::not_found) {
    throw UsageError(output + " exists already; name another file with --output");
  }
  return output;
}

}  // namespace citcat
