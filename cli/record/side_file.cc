#include "cli/record/side_file.h"

#include <filesystem>

#include "formats/io/atomic_file.h"

namespace citcat {

bool makes_recording(const std::string& output) { return output.ends_with(".citcat"); }

namespace {

/// "recording.citcat", or the first of "recording-2.citcat" and so on of which nothing is there.
std::string unused_name(const std::string& stem, const std::string& extension) {
  const auto is_free = [](const std::string& name) {
    for (const char* const beside : {"", ".binz", ".bin.zst", ".side.csv", ".lock"}) {
      std::error_code ignored;
      const auto status = std::filesystem::symlink_status(name + beside, ignored);
      if (status.type() != std::filesystem::file_type::not_found) return false;
    }
    return true;
  };
  std::string name = stem + extension;
  for (unsigned n = 2; !is_free(name); ++n) name = stem + "-" + std::to_string(n) + extension;
  return name;
}

}  // namespace

std::string default_recording() { return unused_name("recording", ".citcat"); }

std::string default_session() { return unused_name("live", ".session"); }

std::string side_file_name(const std::string& capture) {
  std::string stem = capture;
  for (const std::string_view suffix :
       {kPartialSuffix, std::string_view(".zst"), std::string_view(".gz"), std::string_view(".xz"),
        std::string_view(".bz2"), std::string_view(".bin"), std::string_view(".binz")}) {
    if (stem.ends_with(suffix)) stem.erase(stem.size() - suffix.size());
  }
  return stem + ".side.csv";
}

std::string side_file_of(const std::string& side_file, unsigned processor) {
  constexpr std::string_view kSuffix = ".csv";
  const bool named = side_file.ends_with(kSuffix);
  return side_file.substr(0, side_file.size() - (named ? kSuffix.size() : 0)) + "." +
         std::to_string(processor) + (named ? std::string(kSuffix) : "");
}

std::optional<std::string> find_side_file(const std::string& capture) {
  const std::string name = side_file_name(capture);
  for (const std::string& path : {name, name + std::string(kPartialSuffix)}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return std::nullopt;
}

}  // namespace citcat
