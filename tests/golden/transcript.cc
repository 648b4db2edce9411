#include "golden/transcript.h"

#include <regex>
#include <sstream>

#include "formats/io/error.h"
#include "golden/process.h"

namespace citcat::testing {
namespace {

constexpr std::size_t kIndent = 2;  ///< of output

/// Times and speeds differ from run to run, the names of folders from machine to machine.
std::string steady(std::string text, const std::filesystem::path& folder) {
  const std::pair<std::string, const char*> names[] = {{folder.string() + "/", ""},
                                                       {CITCAT_PROGRAM " ", "citcat "},
                                                       {CITCAT_SOURCE_DIR "/samples", "$SAMPLES"}};
  for (const auto& [name, shown] : names) {
    for (std::size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), shown);
  }
  static const std::regex json_time(R"re("(seconds|mips|open|replay)":[-+0-9.eE]+)re");
  static const std::regex speed(R"(in [0-9.]+ s \([0-9.]+ (million|thousand)/s\))");
  static const std::regex seconds(R"([0-9]+\.[0-9]+ s\b)");
  text = std::regex_replace(text, json_time, "\"$1\":...");
  text = std::regex_replace(text, speed, "in ... s (... million/s)");
  return std::regex_replace(text, seconds, "... s");
}

/// Splits a transcript into its steps, line by line.
class TranscriptParser {
 public:
  explicit TranscriptParser(std::string name) : name_(std::move(name)) {}

  void line(const std::string& text) {
    ++number_;
    if (text.empty()) {
      blanks_ += "\n";
    } else if (text[0] == '#') {
      leave_output();
      before_ += text + "\n";
    } else if (text.starts_with("$ ")) {
      leave_output();
      transcript_.steps.push_back({before_ + text + "\n", text.substr(2), ""});
      before_.clear();
      in_command_ = true;
    } else if (text.starts_with("> ") && in_command_ && blanks_.empty()) {
      transcript_.steps.back().given += text + "\n";
      transcript_.steps.back().command += "\n" + text.substr(2);
    } else if (text.starts_with("  ") && !transcript_.steps.empty() && before_.empty()) {
      in_command_ = false;
      transcript_.steps.back().output += blanks_ + text.substr(kIndent) + "\n";
      blanks_.clear();
    } else {
      throw FormatError(name_, number_,
                        "expected a comment, a command, or output after two blanks, found " + text);
    }
  }

  Transcript finish() {
    leave_output();
    transcript_.rest = before_;
    return std::move(transcript_);
  }

 private:
  /// Blank lines that no output follows stand between steps.
  void leave_output() {
    before_ += blanks_;
    blanks_.clear();
    in_command_ = false;
  }

  std::string name_;
  std::uint64_t number_ = 0;
  Transcript transcript_;
  std::string before_;  ///< text of the next step
  std::string blanks_;  ///< blank lines behind output, which may go on
  bool in_command_ = false;
};

}  // namespace

Transcript load_transcript(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  TranscriptParser parser(path.filename().string());
  for (std::string line; std::getline(text, line);) parser.line(line);
  return parser.finish();
}

std::string transcript_text(const Transcript& transcript) {
  std::string text;
  for (const TranscriptStep& step : transcript.steps) {
    text += step.given;
    std::istringstream lines(step.output);
    for (std::string line; std::getline(lines, line);) {
      text += line.empty() ? "\n" : std::string(kIndent, ' ') + line + "\n";
    }
  }
  return text + transcript.rest;
}

std::string run_step(const TranscriptStep& step, const std::filesystem::path& folder) {
  const ProcessResult result =
      run_shell("SAMPLES='" CITCAT_SOURCE_DIR "/samples'; citcat() { \"$CITCAT\" \"$@\"; }; {\n" +
                    step.command + "\n} 2>&1",
                folder);
  std::string output = steady(result.out + result.err, folder);
  if (!output.empty() && output.back() != '\n') output += "\n";
  if (result.exit_code != 0) output += "[exit status " + std::to_string(result.exit_code) + "]\n";
  // Lines carry no blanks at their end, and output none of nothing, so that editors leave them
  // alone.
  output = std::regex_replace(output, std::regex(" +\n"), "\n");
  while (output.ends_with("\n\n")) output.pop_back();
  return output;
}

}  // namespace citcat::testing
