#pragma once
// A description of a command and its options, made from the definitions that parse the command
// line. `help --json`, the manual pages and the completion of the shells are made from it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace citcat {

/// The heading of the example at the foot of --help.
inline constexpr const char* kExampleHeading = "EXAMPLE";
/// The type name of an option that is given a file.
inline constexpr const char* kFileType = "FILE";
/// The type name of an option that is given one of `choices`: "{none,i486}".
std::string type_of(const std::vector<std::string>& choices);

struct OptionDescription {
  std::vector<std::string> names;  ///< with their dashes, the long one first; of an argument: none
  std::string argument;            ///< what it is given: "FILE", "N", "WORD"; empty: a flag
  std::vector<std::string> choices;  ///< the words that may be given; empty: any value
  std::string text;
  std::string usual;  ///< the value without it; empty: none, or the text says it
  bool required = false;
  bool repeated = false;  ///< may be given more than once

  bool is_argument() const { return names.empty(); }
  bool takes_file() const { return argument == kFileType; }
};

struct CommandDescription {
  std::string name, summary, example;
  std::string group;  ///< the heading that --help lists it under; empty: it is not listed
  std::vector<OptionDescription> options;    ///< in the order of --help
  std::vector<OptionDescription> arguments;  ///< by their place, not by a name
};

OptionDescription describe(const CLI::Option& option);
CommandDescription describe(const CLI::App& command);
/// All commands of `program`, in the order of --help.
std::vector<CommandDescription> describe_commands(const CLI::App& program);

/// The description of a command for programs (docs/cli.md, help).
nlohmann::ordered_json command_json(const CommandDescription& command);
/// The names, summaries and groups of all commands.
nlohmann::ordered_json program_json(const CLI::App& program);

}  // namespace citcat
