#pragma once
// Which thread ran on which processor when, as DynamoRIO's scheduler reads it. Format and source:
// docs/export/drmemtrace.md.

#include <cstdint>
#include <string>
#include <vector>

namespace citcat::tools {

class DrmemtraceSchedule {
 public:
  /// At that time the thread runs on that processor, after so many instructions of its file.
  void add(std::uint64_t thread, std::uint64_t time, std::uint64_t processor,
           std::uint64_t instructions);
  void append(const DrmemtraceSchedule& other);
  /// Writes the schedule files of a trace into `folder`. Throws IoError.
  void write(const std::string& folder) const;
  /// Reads the schedule of the files in `folder`. Throws IoError.
  static DrmemtraceSchedule read(const std::string& folder);

 private:
  /// schedule_entry_t.
  struct Entry {
    std::uint64_t thread = 0, time = 0, processor = 0, instructions = 0;
    bool operator==(const Entry&) const = default;
  };
  static_assert(sizeof(Entry) == 32);
  static bool comes_before(const Entry& a, const Entry& b);

  std::vector<Entry> entries_;
};

}  // namespace citcat::tools
