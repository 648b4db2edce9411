#pragma once
// Files that citcat puts beside an output under names of its own choice.

#include <filesystem>
#include <string>

#include "formats/io/error.h"

namespace citcat {

/// Throws IoError where `side`, which goes beside `output` under a name of our own, is there
/// already and `output` is not: then it is no earlier one's, but somebody else's.
inline void require_own_side_file(const std::string& output, const std::string& side) {
  std::error_code ignored;
  // What a link names is as foreign as a file.
  const auto is_there = [&ignored](const std::string& path) {
    return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  };
  if (is_there(side) && !is_there(output))
    throw IoError(side + ": is there already, and not beside a file " + output +
                  "; remove it or choose another name");
}

}  // namespace citcat
