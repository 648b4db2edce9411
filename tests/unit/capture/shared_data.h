#pragma once
// Where the large captures are that do not belong into the repository.

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "formats/io/input.h"

namespace citcat::test {

/// Path below the folder of shared data, or "" when it is not on this machine.
inline std::string shared_file(const std::string& name) {
  const char* given = std::getenv("CITCAT_SHARED");
  const std::filesystem::path root =
      given != nullptr ? given : std::filesystem::path(CITCAT_SOURCE_DIR) / ".." / "shared";
  const std::filesystem::path path = root / "data" / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

/// Rows of a CSV file without its header line; fields as text.
inline std::vector<std::vector<std::string>> csv_rows(const std::string& path) {
  const auto bytes = read_whole_file(path, std::uint64_t{1} << 30);
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
    rows.push_back(fields);
  }
  return rows;
}

}  // namespace citcat::test
