#pragma once
// How the program's commands are made.
//
// To add a command `verb`:
//   1. Write cli/commands/cmd_verb.cc. It defines `extern const Command kVerbCommand` and nothing
//      else that is visible. Options live in a struct that define() fills and the returned function
//      reads:
//
//        namespace citcat {
//        namespace {
//        struct VerbOptions { std::string input; bool json = false; };
//
//        ExitCode run_verb(const VerbOptions& options, const Console& console) { ... }
//
//        CommandRun define_verb(const CommandParser& parser) {
//          auto options = std::make_shared<VerbOptions>();
//          parser.add_option("FILE", options->input, "What it is").required();
//          parser.add_flag("--json", options->json, "Print one line of JSON");
//          return [options](const Console& console) { return run_verb(*options, console); };
//        }
//        }  // namespace
//        extern const Command kVerbCommand{"verb", "Say what it does in one line",
//                                          "citcat verb boot.citcat --json", define_verb};
//        }  // namespace citcat
//
//   2. Declare it and add it to a group of the table in cli/command_list.cc.
//   3. Describe it in docs/cli.md.
//
// Rules all commands keep (tests/golden holds every command of the table to them):
//   - Failures are thrown (formats/io/error.h) and become a message and an exit code in main()
//   alone.
//   - Files are opened by the code that reads them, and the parser does not look for them: a file
//     that is not there is ExitCode::system, not ExitCode::usage.
//   - What the options mean together is checked before work starts, by throwing UsageError.
//   - -q, --quiet and -h, --help are added to every command here: do not define them.
//   - The example names input files with an extension, and can be pasted into a shell.

#include <functional>
#include <vector>

#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/parsing/command_parser.h"

namespace citcat {

/// Runs a command whose options have been parsed.
using CommandRun = std::function<ExitCode(const Console& console)>;

struct Command {
  const char* name;     ///< the verb on the command line
  const char* summary;  ///< one line, imperative, no full stop
  const char* example;  ///< one or more lines to paste, shown at the end of --help
  /// Adds the command's options and arguments to `parser`. The function returned is called at most
  /// once, after parsing; it owns the option values.
  CommandRun (*define)(const CommandParser& parser);
};

/// Commands that --help lists under one heading.
struct CommandGroup {
  const char* title;  ///< kFoldedGroup: --help does not list them
  std::vector<const Command*> commands;
};

/// The group of the commands that the foot of --help names: those that do less than others that are
/// listed, and the demonstration. Each has its help, manual page and completion.
inline constexpr const char* kFoldedGroup = "";

/// All commands in their groups, in the order of --help.
const std::vector<CommandGroup>& command_groups();
/// The same without their groups.
const std::vector<const Command*>& command_list();

}  // namespace citcat
