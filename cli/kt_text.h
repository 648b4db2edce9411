#pragma once
// Records of a trace as text, JSON and CSV, and the options that choose among them.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/parsing/command_parser.h"
#include "replay/trace/trace_reader.h"
#include "x86/disassembler.h"

namespace citcat {

/// How records are printed.
enum class TextForm : std::uint8_t { text, json, csv };
/// Adds --format, which is to be one of `names`, and --json, which is the same as --format json.
void define_text_form(const CommandParser& parser, std::string& format,
                      const std::vector<std::string>& names);
/// The form of that name. Throws UsageError.
TextForm parse_form(const std::string& name);
/// Throws UsageError unless `bits` is 0, 16 or 32.
void check_bits(int bits);

/// The records and events of a trace, each as a line.
class TraceText {
 public:
  /// `bits`: of all code, 16 or 32; 0: as the trace tells, else guessed.
  TraceText(TextForm form, int bits) : form_(form), given_(bits), guess_(0) {}

  /// Adds when the bus showed each: in clocks, and where their rate is known (`clock_hz` above 0)
  /// in seconds.
  void show_clocks(double clock_hz) {
    clocks_ = true;
    clock_hz_ = clock_hz;
  }
  /// The titles above the columns of text on a terminal, without clocks.
  static std::string_view titles();
  /// The text before all records, with its line end; may be empty.
  std::string head() const;
  /// Disassembled; of a record that is an instruction.
  std::string instruction(const TraceRecord& record) { return disassemble(record).text; }
  /// The next record or event as a line with its end, after what has to be said first: in text,
  /// that a trace without notes tells neither the size of its code nor exact positions.
  std::string line(const TraceRecord& record);

 private:
  struct Code {
    std::string text;
    int bits = 0;
    const char* source = "";
  };
  Code disassemble(const TraceRecord& record);
  std::string people_text(const TraceRecord& record);
  std::string json_text(const TraceRecord& record);
  std::string csv_text(const TraceRecord& record);
  nlohmann::ordered_json record_json(const TraceRecord& record);
  std::string clock_columns(const TraceRecord& record) const;
  std::string csv_clock(const TraceRecord& record) const;

  TextForm form_;
  int given_;
  Disassembler guess_;
  bool warned_ = false;
  bool clocks_ = false;
  double clock_hz_ = 0;
};

/// Prints what `reader` gives up to `to`, in pieces, with `print`. False when the trace has ended
/// and there was nothing. Where it diverges, TraceDiverged comes after what was sure.
template <class Print>
bool print_trace(TraceReader& reader, Position to, TraceText& text, Print&& print) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::string lines = text.head();
  TraceRecord record;
  bool ended = false, any = false;
  try {
    while (!(ended = !reader.next(record)) && record.position < to) {
      any = true;
      lines += text.line(record);
      if (lines.size() < kPiece) continue;
      print(lines);
      lines.clear();
    }
  } catch (const TraceDiverged&) {
    print(lines);
    throw;
  }
  print(lines);
  return any || !ended;
}

}  // namespace citcat
