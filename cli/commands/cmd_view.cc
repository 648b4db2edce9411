// citcat view: a recording in a browser; the entries of IDtrace's files.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/file_kind.h"
#include "cli/idtrace/idtrace_view.h"
#include "cli/machine/processor_argument.h"
#include "cli/view/recording_view.h"
#include "events/archive/recording_file.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

/// Runs that a page shows at most of an archive of several recordings: each is replayed, and its
/// checkpoints are kept.
constexpr std::size_t kRunsOfAPage = 16;

struct ViewArguments {
  std::vector<std::string> files;
  IdtraceView view;
  RecordingViewArguments recording;
  ProcessorArgument processor;
  std::string format, from, to;
};

/// An entry of a trace, or an instruction; nothing where none was given.
std::optional<std::uint64_t> parse_number(const char* option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::optional<Position> position = parse_position(text);
  if (!position || position->iteration != 0)
    throw UsageError(std::string(option) + ": expected a number, found " + text);
  return position->instruction;
}

bool is_idtrace(FileKind kind) {
  return kind == FileKind::idtrace_trace || kind == FileKind::idtrace_blocks ||
         kind == FileKind::idtrace_counts;
}

ExitCode view_idtrace(ViewArguments arguments, FileKind kind, const Console& console) {
  arguments.view.form = parse_form(arguments.format.empty() ? "text" : arguments.format);
  arguments.view.from = parse_number("--from", arguments.from).value_or(0);
  arguments.view.to =
      parse_number("--to", arguments.to).value_or(std::numeric_limits<std::uint64_t>::max());
  print_idtrace_file(arguments.view, kind, console);
  return ExitCode::ok;
}

/// The recordings of an archive, as far as a page shows them; a captured suite of single
/// instructions has thousands.
std::vector<std::string> names_of_recordings(const std::string& archive, const Console& console) {
  if (archive == "-" || is_once_input(archive) || parse_recording_name(archive).number)
    return {archive};
  const std::size_t count = RecordingFile::open(archive).recordings();
  if (count < 2) return {archive};
  if (count > kRunsOfAPage) {
    console.warn(
        fmt::format("{0} holds {1} recordings: the page shows the first {2}; {0}@{2} is "
                    "the next one",
                    archive, count, kRunsOfAPage));
  }
  std::vector<std::string> names;
  for (std::size_t n = 0; n < std::min(count, kRunsOfAPage); ++n)
    names.push_back(fmt::format("{}@{}", archive, n));
  return names;
}

/// Two that are compared, or all processors or recordings of one archive, or the one that was
/// named.
std::vector<std::string> viewed_names(const ViewArguments& arguments, const Console& console) {
  std::vector<std::string> names;
  for (const std::string& file : arguments.files) {
    names.push_back(arguments.processor.number ? arguments.processor.name(file) : file);
  }
  if (arguments.recording.compare || arguments.processor.number) return names;
  if (arguments.recording.machine) return names_of_processors(names.front());
  return names_of_recordings(names.front(), console);
}

ExitCode run_view(ViewArguments arguments, const Console& console) {
  RecordingViewArguments& recording = arguments.recording;
  if (arguments.files.size() != (recording.compare ? 2 : 1)) {
    throw UsageError(recording.compare ? "--compare: expected two recordings"
                                       : "expected one file; two with --compare");
  }
  arguments.view.file = arguments.files.front();
  const FileKind kind = find_file_kind(arguments.view.file).kind;
  if (kind != FileKind::recording) {
    if (is_idtrace(kind) && (recording.given() || arguments.processor.number)) {
      throw UsageError(
          "--export, --port, --no-browser, --compare, --symbols, --hints, --processor and "
          "--unchecked are only for recordings; " +
          arguments.view.file + " is none");
    }
    return view_idtrace(std::move(arguments), kind, console);
  }
  if (!arguments.format.empty()) throw UsageError("--format is only for IDtrace files");
  if (recording.output.empty() && !(arguments.from.empty() && arguments.to.empty())) {
    throw UsageError("--from and --to of a recording need --export");
  }
  arguments.processor.take_from(arguments.from);
  arguments.processor.take_from(arguments.to);
  if (!recording.compare && !arguments.processor.number) {
    recording.machine = find_machine(arguments.view.file);
  }
  recording.recordings = viewed_names(arguments, console);
  recording.from = parse_number("--from", arguments.from).value_or(0);
  recording.to = parse_number("--to", arguments.to);
  return view_recordings(recording, console);
}

CommandRun define_view(const CommandParser& parser) {
  auto arguments = std::make_shared<ViewArguments>();
  parser
      .add_option("FILE", arguments->files,
                  "Recording (two with --compare), or a trace (.trc), blocks (.blk) or profile "
                  "(.cnt) of IDtrace")
      .required();
  arguments->recording.define(parser);
  arguments->processor.define(parser);
  parser.add_option("--from", arguments->from,
                    "First instruction (with --export), or first entry of an IDtrace file");
  parser.add_option("--to", arguments->to, "Where to stop: this one is not included");
  parser.add_option(
      "--format", arguments->format,
      "Form of an IDtrace file's entries: text, json (one object a line) or csv (default: text)");
  arguments->view.idtrace.define(parser);
  return [arguments](const Console& console) { return run_view(*arguments, console); };
}

}  // namespace

extern const Command kViewCommand{
    "view", "Look at a recording in a browser, at any moment of it; print an IDtrace file",
    "citcat view boot.citcat\n"
    "citcat view boot.citcat --no-browser --port 8080\n"
    "citcat view boot.citcat --export page.html --from 1000000 --to 2000000\n"
    "citcat view --compare good.citcat bad.citcat\n"
    "citcat view run.trc --from 1000 --to 1020",
    define_view};

}  // namespace citcat
