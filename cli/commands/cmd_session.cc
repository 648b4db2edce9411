// citcat session: adds metrics to a replay, and removes them again, while it goes on. Commands come
// from the standard input.

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/analysis/metric_arguments.h"
#include "cli/command.h"
#include "cli/divergence_report.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/replay_options.h"
#include "cli/placed_recording.h"
#include "cli/text_error_report.h"
#include "formats/io/error.h"
#include "formats/io/line_reader.h"
#include "formats/io/once_input.h"
#include "replay/run/replay_session.h"
#include "replay/session/first_entry.h"
#include "tools/guest/guest_names.h"
#include "tools/guest/recording_symbols.h"
#include "tools/host/report_renderers.h"
#include "tools/host/tool_host.h"
#include "tools/mdl/session_tool.h"

namespace citcat {
namespace {

constexpr const char* kCommands =
    "go N, go +N, go end, add METRIC @ FOCUS, remove METRIC [@ FOCUS], mdl FILE, report, where or "
    "quit";

struct SessionArguments {
  std::string recording;
  ProcessorArgument processor;
  std::vector<std::string> files, symbols;
  bool json = false, unchecked = false;
};

/// The next line of `in` without its end; false at the end. No command is longer than what is
/// taken: a stream without ends of lines must not fill the memory. Character by character, because
/// an answer is expected before the next line comes.
bool next_line(std::istream& in, std::string& line) {
  constexpr std::size_t kMost = LineReader::kMaxLine;
  line.clear();
  char c = 0;
  while (in.get(c) && c != '\n') {
    if (line.size() == kMost) {
      throw UsageError(
          fmt::format("expected commands of at most {} bytes, found a longer line", kMost));
    }
    line += c;
  }
  return in.good() || !line.empty();
}

/// One replay and the commands that are given to it.
class Session {
 public:
  Session(const RecordingFile& file, const SessionArguments& arguments, const Console& console)
      : arguments_(arguments),
        console_(console),
        symbols_(tools::known_symbols(file, arguments.symbols)),
        analysis_(mdl::make_session_tool(metrics_)) {
    for (const std::string& path : arguments.files) library_.add_file(path);
    tools::HostOptions host;
    host.names = &names_;
    host.isolated_tables = begins_with_isolated_tables(file.recording());
    host_ = std::make_unique<tools::ToolHost>(analysis_, host);
    SessionOptions options;
    options.check = !arguments.unchecked;
    session_ = std::make_unique<ReplaySession>(file, host_.get(), options);
  }

  /// Commands from `in`, up to its end or `quit`. A command that is refused changes nothing.
  ExitCode serve(std::istream& in) {
    for (std::string line; next_line(in, line);) {
      try {
        if (!obey(line)) break;
      } catch (const UsageError& e) {
        refuse(e);
      } catch (const mdl::TextError& e) {
        tell_text_error(e, console_);
        refused_ = true;
      }
    }
    if (divergence_ || refused_) return divergence_ ? ExitCode::answer_is_no : ExitCode::usage;
    return ExitCode::ok;
  }

 private:
  std::uint64_t position() const { return session_->position().instruction; }

  void refuse(const Error& e) {
    console_.error(e.what());
    refused_ = true;
  }

  /// False where it is the last one.
  bool obey(const std::string& line) {
    std::istringstream words(line);
    std::string command, rest;
    words >> command;
    std::getline(words >> std::ws, rest);
    while (!rest.empty() && rest.back() == ' ') rest.pop_back();
    if (command.empty() || command.front() == '#') return true;
    if (command == "quit") return false;
    if (command == "go") {
      go(rest);
    } else if (command == "add") {
      metrics_.add(mdl::parse_metric_request(without_blanks(rest)), position());
    } else if (command == "remove") {
      const std::string name = without_blanks(rest);
      metrics_.remove(
          name.find('@') == std::string::npos ? name : mdl::parse_metric_request(name).text,
          position());
    } else if (command == "mdl") {
      add_file(rest);
    } else if (command == "report") {
      report();
    } else if (command == "where") {
      console_.print(fmt::format("instruction {}\n", position()));
    } else {
      throw UsageError(fmt::format("expected {}; found {}", kCommands, command));
    }
    console_.flush();
    return true;
  }

  /// One that cannot be read is refused; what the recording has of that ends the session.
  void add_file(const std::string& name) {
    try {
      library_.add_file(name);
    } catch (const FormatError& e) {
      throw UsageError(e.what());
    } catch (const IoError& e) {
      throw UsageError(e.what());
    }
  }

  static std::string without_blanks(std::string text) {
    std::erase(text, ' ');
    return text;
  }

  void go(const std::string& text) {
    const bool relative = text.starts_with('+');
    std::uint64_t to = 0;
    if (text == "end") {
      to = ~std::uint64_t{0};
    } else if (!parse_decimal(std::string_view(text).substr(relative ? 1 : 0), to)) {
      throw UsageError("go: expected N, +N or end; found " + text);
    } else if (relative) {
      to += position();
    }
    if (to < position()) {
      throw UsageError(fmt::format("go {}: the run is at {} and cannot go back", text, position()));
    }
    if (divergence_) throw UsageError("go: the replay has diverged");
    metrics_.go_to(to);
    const ReplayReport report = session_->run_to(to);
    if (!report.divergence) return;
    divergence_ = true;
    for (const std::string& line : divergence_lines(*report.divergence)) console_.warn(line);
  }

  void report() const {
    tools::Report report;
    report.value("position", "instruction", position());
    metrics_.report(report, position());
    if (arguments_.json) return console_.print_json(tools::report_json(report));
    console_.print(tools::report_text(report));
  }

  const SessionArguments& arguments_;
  const Console& console_;
  const Symbols symbols_;
  tools::GuestNames names_{symbols_};
  mdl::Library library_;
  mdl::SessionMetrics metrics_{library_, &names_};
  tools::Analysis analysis_;
  std::unique_ptr<tools::ToolHost> host_;
  std::unique_ptr<ReplaySession> session_;
  bool divergence_ = false, refused_ = false;
};

CommandRun define_session(const CommandParser& parser) {
  auto arguments = std::make_shared<SessionArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to replay").required();
  arguments->processor.define(parser);
  parser.add_option("--mdl", arguments->files, "File with metrics in MDL; may be repeated")
      .repeated();
  define_symbols(parser, arguments->symbols);
  define_unchecked(parser, arguments->unchecked);
  parser.add_flag("--json", arguments->json, "Print reports as one line of JSON each");
  return [arguments](const Console& console) {
    if (is_standard_input(arguments->recording)) {
      throw UsageError(arguments->recording +
                       ": commands come from the standard input, the recording cannot: use a file");
    }
    const PlacedRecording placed =
        open_placed(arguments->processor.name(arguments->recording), console);
    return Session(placed.file, *arguments, console).serve(std::cin);
  };
}

}  // namespace

extern const Command kSessionCommand{"session", "Add and remove metrics while a replay goes on",
                                     "citcat session boot.citcat --mdl my.mdl --json",
                                     define_session};

}  // namespace citcat
