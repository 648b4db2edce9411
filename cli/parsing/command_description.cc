#include "cli/parsing/command_description.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string_view>

namespace citcat {
namespace {

/// "none,i486" of "TEXT:{none,i486}", split.
std::vector<std::string> choices_of(const std::string& type) {
  std::vector<std::string> choices;
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::string_view rest = std::string_view(type).substr(begin + 1, end - begin - 1);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    choices.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return choices;
}

/// The word for the value in a synopsis.
std::string argument_of(const std::string& type) {
  return type.find('{') != std::string::npos ? "WORD" : type;
}

nlohmann::ordered_json option_json(const OptionDescription& d) {
  nlohmann::ordered_json json;
  json["names"] = d.names;
  json["argument"] = nullptr;
  if (!d.argument.empty()) json["argument"] = d.argument;
  json["choices"] = d.choices;
  json["text"] = d.text;
  json["default"] = nullptr;
  if (!d.usual.empty()) json["default"] = d.usual;
  json["required"] = d.required;
  json["repeated"] = d.repeated;
  return json;
}

}  // namespace

OptionDescription describe(const CLI::Option& option) {
  OptionDescription d;
  for (const std::string& name : option.get_lnames()) d.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) d.names.push_back("-" + name);
  const std::string type = option.get_type_name();
  d.choices = choices_of(type);
  d.text = option.get_description();
  d.usual = option.get_default_str();
  d.required = option.get_required();
  const bool is_flag = option.get_items_expected_max() == 0;
  if (d.is_argument()) {
    d.argument = d.choices.empty() ? option.get_name(true) : "WORD";
    d.repeated = option.get_expected_max() > 1;
  } else {
    if (!is_flag) d.argument = argument_of(type);
    d.repeated = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll && !is_flag;
  }
  return d;
}

std::string type_of(const std::vector<std::string>& choices) {
  return fmt::format("{{{}}}", fmt::join(choices, ","));
}

CommandDescription describe(const CLI::App& command) {
  CommandDescription d;
  d.name = command.get_name();
  d.summary = command.get_description();
  d.example = command.get_footer();
  d.group = command.get_group();
  // Without the heading and the margin that --help has.
  if (const std::size_t at = d.example.find('\n'); d.example.starts_with(kExampleHeading)) {
    d.example.erase(0, at);
    for (std::size_t n; (n = d.example.find("\n  ")) != std::string::npos;)
      d.example.erase(n + 1, 2);
    d.example.erase(0, 1);
    while (d.example.ends_with('\n')) d.example.pop_back();
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    OptionDescription described = describe(*option);
    (described.is_argument() ? d.arguments : d.options).push_back(std::move(described));
  }
  return d;
}

std::vector<CommandDescription> describe_commands(const CLI::App& program) {
  std::vector<CommandDescription> all;
  for (const CLI::App* command : program.get_subcommands({})) all.push_back(describe(*command));
  return all;
}

nlohmann::ordered_json command_json(const CommandDescription& command) {
  nlohmann::ordered_json json;
  json["command"] = command.name;
  json["summary"] = command.summary;
  json["arguments"] = nlohmann::ordered_json::array();
  for (const OptionDescription& d : command.arguments) json["arguments"].push_back(option_json(d));
  json["options"] = nlohmann::ordered_json::array();
  for (const OptionDescription& d : command.options) json["options"].push_back(option_json(d));
  json["example"] = command.example;
  return json;
}

nlohmann::ordered_json program_json(const CLI::App& program) {
  nlohmann::ordered_json json;
  json["version"] = CITCAT_VERSION;
  json["commands"] = nlohmann::ordered_json::array();
  for (const CommandDescription& command : describe_commands(program)) {
    json["commands"].push_back(
        {{"command", command.name}, {"summary", command.summary}, {"group", command.group}});
  }
  return json;
}

}  // namespace citcat
