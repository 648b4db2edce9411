#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output_check.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/command_parser.h"
#include "cli/parsing/suggestion.h"
#include "formats/io/error.h"
#include "replay/machine/execution_path.h"

namespace citcat {
namespace {

/// Shows options in words of ours, where CLI11 shows types of C++, ranges and units.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const OptionDescription d = citcat::describe(*option);
    if (d.is_argument()) return d.repeated ? " ..." : "";
    if (d.argument.empty()) return "";
    return " " + (d.choices.empty() ? d.argument : type_of(d.choices));
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const OptionDescription d = citcat::describe(*option);
    std::string text = d.text;
    if (!d.usual.empty()) text += " (default: " + d.usual + ")";
    if (d.required && !d.is_argument()) text += " (required)";
    return text;
  }
};

/// Indents each line of an example under a heading, for the foot of --help.
std::string example_footer(const std::string& example) {
  std::string footer = kExampleHeading;
  footer += "\n  ";
  for (const char character : example) {
    footer += character;
    if (character == '\n') footer += "  ";
  }
  return footer + "\n";
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// The nearest of `known`, or else where the right words are to be found.
std::string advice(const std::string& word, const std::vector<std::string>& known,
                   const std::string& help) {
  const std::string nearest = did_you_mean(word, known);
  return nearest.empty() ? " (see " + help + ")" : nearest;
}

std::string unknown_command(const std::string& word, const CLI::App& app) {
  return "there is no command " + word + advice(word, command_names(app), "citcat help");
}

/// What CLI11 found, in words of ours where its own name types of C++.
std::string reason(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (error.get_name() != "ArgumentMismatch") return text;
  const std::string option = text.substr(0, text.find(':'));
  if (text.ends_with("missing")) return option + ": expected a value after it, found none";
  return text.find("At Most") == std::string::npos ? text : option + " is given more than once";
}

/// The first argument too many. CLI11 names them all, the last one first.
std::string first_extra(const CLI::ParseError& error) {
  const std::string text = error.what();
  const bool several = text.find("arguments") != std::string::npos;
  return text.substr(several ? text.rfind(' ') + 1 : text.find(": ") + 2);
}

/// What is wrong with a command line that `error` refused. CLI11 complains of whatever it checks
/// first; a word that it does not know explains most of the rest.
std::string explanation(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& place = chosen.empty() ? app : *chosen.front();
  const std::string help = "citcat " + (chosen.empty() ? "" : place.get_name() + " ") + "--help";
  for (const std::string& word : place.remaining()) {
    if (word == "--") break;  // the rest is another program's
    const bool is_option = word.size() > 1 && word.front() == '-';
    if (is_option) {
      const std::string name = word.substr(0, word.find('='));
      const CLI::Option* const command = place.get_option_no_throw("COMMAND");
      if (command != nullptr && command->count() > 0)
        return fmt::format("{} has no option {}; if it is one of {}, write -- before that",
                           place.get_name(), name, command->results().front());
      return (chosen.empty() ? "citcat" : place.get_name()) + " has no option " + name +
             advice(name, option_names(place), help);
    }
    if (chosen.empty()) return unknown_command(word, app);
  }
  // By its code: CLI11 gives this error the name of the command.
  if (!chosen.empty() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    return place.get_name() + " does not expect a further argument, found " + first_extra(error) +
           " (see " + help + ")";
  }
  return reason(error) + " (see " + help + ")";
}

std::string version() {
  const std::string program = "citcat " CITCAT_VERSION;
  return has_fast_tier() ? program
                         : program + ", built without the part \"fast\": replays take longer";
}

}  // namespace

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>(
          "citcat: instruction traces, recomputed from captures of a processor's bus", "citcat")) {
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->set_version_flag("-V,--version", version());
  std::string statuses;
  for (const ExitMeaning& exit : kExitMeanings) {
    statuses += statuses.empty() ? "" : ", ";
    statuses += std::to_string(static_cast<int>(exit.code)) + " " + exit.meaning;
  }
  app_->footer(
      "New here? 'citcat demo' shows the whole way with the capture of a real PC.\n'citcat help "
      "COMMAND' explains the options of a command, with an example.\ncount, bpred and cache are "
      "short for analyze --tool count, bpred and cache; rep reads IDtrace files.\nExit status: " +
      statuses + ".");
  app_->require_subcommand(0, 1);  // none at all is reported in words of ours
  for (const CommandGroup& group : command_groups()) {
    for (const Command* command : group.commands) add_command(*command, group.title);
  }
  add_help();
}

CommandLine::~CommandLine() = default;

void CommandLine::add_command(const Command& command, const std::string& group) {
  CLI::App* const sub = app_->add_subcommand(command.name, command.summary);
  sub->group(group);
  undefined_.emplace(command.name, &command);
}

void CommandLine::define(std::string name) {
  const auto found = undefined_.find(name);
  if (found == undefined_.end()) return;
  const Command& command = *found->second;
  undefined_.erase(found);
  CLI::App* const sub = app_->get_subcommand(name);
  sub->footer(example_footer(command.example));
  const CommandParser parser(*sub);
  const CommandRun run = command.define(parser);
  sub->add_flag("-q,--quiet", quiet_, "Print no notes and no progress, only warnings and errors");
  parser
      .add_option("--memory-limit", memory_limit_,
                  "Bytes of memory that the contents of files, and the data that a replay writes, "
                  "may take (default: 2G)")
      .as_size();
  sub->callback([this, run, sub] {
    check_outputs(*sub);
    chosen_ = run;
  });
}

void CommandLine::add_help() {
  struct HelpArguments {
    std::string command;
    bool json = false;
  };
  const auto arguments = std::make_shared<HelpArguments>();
  CLI::App* const sub = app_->add_subcommand("help", "Explain a command, or list them all");
  sub->group(kFoldedGroup);  // the foot of --help names it
  sub->footer(example_footer("citcat help import"));
  sub->add_option("COMMAND", arguments->command, "The command to explain")
      ->type_name(type_of(command_names(*app_)));
  sub->add_flag("--json", arguments->json, "Print one line of JSON");
  sub->callback([this, arguments] {
    chosen_ = [this, arguments](const Console& console) {
      const std::vector<std::string> names = command_names(*app_);
      const std::string& wanted = arguments->command;
      const bool all = wanted.empty();
      if (!all && std::find(names.begin(), names.end(), wanted) == names.end()) {
        throw UsageError(unknown_command(wanted, *app_));
      }
      if (arguments->json) {
        console.print_json(all ? program_json(*app_)
                               : command_json(describe(*app_->get_subcommand(wanted))));
      } else {
        // App::help() would be that of this command, which was chosen.
        const CLI::App* const explained = all ? app_.get() : app_->get_subcommand(wanted);
        console.print(app_->get_formatter()->make_help(
            explained, all ? "citcat" : "citcat " + wanted, CLI::AppFormatMode::Normal));
      }
      return ExitCode::ok;
    };
  });
}

const CLI::App& CommandLine::app() {
  while (!undefined_.empty()) define(undefined_.begin()->first);
  return *app_;
}

CommandRun CommandLine::parse(int argc, const char* const* argv) {
  // Wherever it is: after `help`, too.
  for (int i = 1; i < argc; ++i) define(argv[i]);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 has exit codes of its own, 100 and up. Zero means that help or the version was asked
    // for, and exit() prints it.
    if (error.get_exit_code() == 0) {
      app_->exit(error);
      return [](const Console&) { return ExitCode::ok; };
    }
    throw UsageError(explanation(*app_, error));
  }
  if (!chosen_) {
    throw UsageError("no command given: citcat help lists them, citcat demo shows what they do");
  }
  return chosen_;
}

}  // namespace citcat
