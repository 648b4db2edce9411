#pragma once
// Logs of emulators that name one instruction, or one block of code, after another.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/line_reader.h"

namespace citcat {

/// One entry of a log.
struct EmulatorLogEntry {
  std::uint64_t line = 0;
  std::uint64_t at = 0;  ///< linear address, or offset in CS (LogForm::offsets)
  std::string text;      ///< the line itself
  /// The first bytes of the instruction, as many as are told; there may be more than it has.
  std::vector<std::uint8_t> bytes = {};
  /// The greatest number of instructions that it stands for; 0: no limit.
  std::uint32_t most = 1;
};

/// How a log is written.
struct LogForm {
  const char* name;
  const char* meaning;
  /// The address in a line; nullopt where the line is about something else.
  std::optional<std::uint64_t> (*address)(std::string_view line);
  /// The bytes in a line; null: no line tells them.
  std::vector<std::uint8_t> (*bytes)(std::string_view line) = nullptr;
  bool offsets = false;  ///< addresses are offsets in CS
  /// The greatest number of instructions that the entry of a line stands for; null: one.
  std::uint32_t (*most)(std::string_view line) = nullptr;
  /// Options with which the emulator leaves nothing out of its log; null: none are needed.
  const char* whole_with = nullptr;
  /// The processor that an entry is of; null: no line names one.
  std::optional<std::uint64_t> (*processor)(std::string_view line) = nullptr;
};

/// qemu-exec, qemu-execlog, bochs, mame.
const std::vector<LogForm>& log_forms();

class EmulatorLog {
 public:
  /// `form`: a name of log_forms(), or empty: the first form that has entries among the first
  /// lines. `processor`: leave out the entries of others. Throws IoError, UsageError for another
  /// name or if the form names no processors, FormatError where no line is an entry.
  EmulatorLog(const std::string& path, const std::string& form,
              std::optional<std::uint64_t> processor = std::nullopt)
      : EmulatorLog(std::make_unique<InputStream>(path), form, processor) {}
  EmulatorLog(std::unique_ptr<InputStream> input, const std::string& form,
              std::optional<std::uint64_t> processor = std::nullopt);
  const LogForm& form() const { return *form_; }
  /// False after the last entry. Throws FormatError there if no line was an entry, UsageError where
  /// there are entries of several processors and none was chosen.
  bool next(EmulatorLogEntry& entry);

 private:
  const LogForm* form_ = nullptr;
  void find_form();
  bool next_line(std::string_view& line);
  bool is_of_processor(std::string_view line);

  std::unique_ptr<LineReader> lines_;
  /// The first lines, which were read to find the form.
  std::vector<std::string> first_;
  std::size_t taken_ = 0;  ///< lines
  bool has_entries_ = false;
  std::optional<std::uint64_t> processor_;  ///< the one chosen, or else that of the first entry
  bool chosen_ = false;
};

}  // namespace citcat
