#include "cli/machine/internal_files.h"

#include <charconv>
#include <filesystem>

#include "events/processors/bus_note.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

/// The processor of "P=FILE", and where FILE begins; false for any other text.
bool parse_processor(const std::string& text, std::size_t& processor, std::size_t& file) {
  std::error_code ignored;
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || std::filesystem::exists(text, ignored)) return false;
  const auto parsed = std::from_chars(text.data(), text.data() + sign, processor);
  file = sign + 1;
  return sign != 0 && parsed.ec == std::errc() && parsed.ptr == text.data() + sign;
}

}  // namespace

std::vector<std::string> InternalFiles::paths() const {
  std::vector<std::string> paths = of_processors;
  for (std::string& path : paths) {
    if (path == "none") path.clear();
  }
  return paths;
}

InternalFiles parse_internal_files(const std::vector<std::string>& given) {
  InternalFiles files;
  for (const std::string& text : given) {
    std::size_t processor = 0, begin = 0;
    if (!parse_processor(text, processor, begin)) {
      if (given.size() > 1)
        throw UsageError("--internal " + text + ": with several of them each is P=FILE");
      files.single = text;
      continue;
    }
    if (processor >= kMostProcessors) {
      throw UsageError("--internal " + text + ": expected a processor below " +
                       std::to_string(kMostProcessors));
    }
    if (files.of_processors.size() <= processor) files.of_processors.resize(processor + 1);
    std::string& its = files.of_processors[processor];
    if (!its.empty())
      throw UsageError("--internal: processor " + std::to_string(processor) + " has two files");
    its = text.substr(begin);
  }
  return files;
}

}  // namespace citcat
