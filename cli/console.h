#pragma once
// The output of a command: results, notes, warnings and progress, each to its stream.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/progress.h"

namespace citcat {

/// Where a command talks to people: results to stdout, everything else to stderr.
class Console {
 public:
  explicit Console(bool quiet) : quiet_(quiet) {}

  /// A result of lines that are ours. Add the line end yourself. At a terminal, whatever else than
  /// a line end and a tab could command it is made visible.
  void print(std::string_view text) const;
  /// A line that may quote names and texts from elsewhere, which begin no line of their own.
  void print_line(std::string_view line) const;
  /// A line that answers a question: `verdict` ("match", "damaged") in the colour of its being good
  /// or not where stdout is a terminal, then `rest`.
  void print_verdict(bool good, std::string_view verdict, std::string_view rest) const;
  /// Prints the titles above the columns of a table; only where stdout is a terminal, so that no
  /// program that reads the table has to skip it.
  void print_titles(std::string_view titles) const;
  /// A result for programs: one line of JSON, keys in the order they were put in. Text that is not
  /// UTF-8 (file names may be anything) is replaced by U+FFFD; characters that are not seen are
  /// escaped.
  void print_json(const nlohmann::ordered_json& value) const;

  /// The same, but results for programs go to the end of `into`, an array that must outlive it.
  Console collecting(nlohmann::ordered_json& into) const {
    Console its = *this;
    its.collected_ = &into;
    return its;
  }

  /// The same of results that are text.
  Console collecting_text(std::string& into) const {
    Console its = *this;
    its.collected_text_ = &into;
    return its;
  }

  /// Information for people, as "citcat: text" on stderr; silenced by --quiet.
  void note(std::string_view text) const;
  /// A reason to trust the result less; never silenced.
  void warn(std::string_view text) const;
  /// Why the command failed. main() calls this; commands throw instead.
  void error(std::string_view text) const;

  /// A progress line, seen only when stderr is a terminal and not under --quiet.
  Progress progress(std::string label, std::string unit, std::uint64_t total = 0) const;

  /// Makes sure all results reached their destination. Throws IoError when stdout failed, as it
  /// does on a full disk.
  void flush() const;

 private:
  void write(std::string_view text) const;

  bool quiet_;
  nlohmann::ordered_json* collected_ = nullptr;
  std::string* collected_text_ = nullptr;
};

}  // namespace citcat
