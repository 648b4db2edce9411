// citcat view: the entries of IDtrace's files.

#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/idtrace/idtrace_view.h"

namespace citcat {
namespace {

struct ViewArguments {
  IdtraceView view;
  std::string format = "text";
};

ExitCode run_view(ViewArguments arguments, const Console& console) {
  arguments.view.form = parse_form(arguments.format);
  print_idtrace_file(arguments.view, find_file_kind(arguments.view.file).kind, console);
  return ExitCode::ok;
}

CommandRun define_view(const CommandParser& parser) {
  auto arguments = std::make_shared<ViewArguments>();
  parser
      .add_option("FILE", arguments->view.file,
                  "Trace (.trc), blocks (.blk) or profile (.cnt) of IDtrace's")
      .required();
  parser.add_option("--from", arguments->view.from, "First entry, or block");
  parser.add_option("--to", arguments->view.to, "Where to stop; itself not included");
  parser.add_option("--format", arguments->format, "text, json (one object a line) or csv");
  arguments->view.idtrace.define(parser);
  return [arguments](const Console& console) { return run_view(*arguments, console); };
}

}  // namespace

extern const Command kViewCommand{"view", "Print the entries of an IDtrace file",
                                  "citcat view run.trc --from 1000 --to 1020", define_view};

}  // namespace citcat
