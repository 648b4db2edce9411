#pragma once
// `--internal FILE`, or `--internal P=FILE` for each of several processors.

#include <string>
#include <vector>

namespace citcat {

struct InternalFiles {
  std::string single;                      ///< FILE; "" where none was given
  std::vector<std::string> of_processors;  ///< by number; "" where none was given, or "none"
  /// Those to read: "" for "none" too.
  std::vector<std::string> paths() const;
};

/// Throws UsageError where both forms are given, or one twice.
InternalFiles parse_internal_files(const std::vector<std::string>& given);

}  // namespace citcat
