#include "cli/pages/completion.h"

#include <fmt/format.h>

#include <string_view>

namespace citcat {
namespace {

constexpr const char* kOrigin = "# Made from the program's definitions of its options.\n";

/// `text` as one word of a shell.
std::string quoted(std::string_view text, std::string_view inner_quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += inner_quote;
    } else {
      out += c;
    }
  }
  return out + "'";
}
std::string sh_quoted(std::string_view text) { return quoted(text, "'\\''"); }
/// In fish a backslash within single quotes escapes quotes and itself.
std::string fish_quoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return quoted(escaped, "\\'");
}

std::string words(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, " "));
}

std::string command_words(const std::vector<CommandDescription>& commands) {
  std::vector<std::string> names;
  for (const CommandDescription& command : commands) names.push_back(command.name);
  return words(names);
}

// ---- bash --------------------------------------------------------------------------------------

constexpr const char* kBashHead = R"(_citcat() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command= options= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then
      command=${COMP_WORDS[i]}
      break
    fi
  done
)";

/// An empty reply makes bash offer files (complete -o default), except after `compopt`.
constexpr const char* kBashNothing = "compopt +o default 2>/dev/null; return";

/// "'import -o' | 'import --output'"
std::string bash_pattern(const CommandDescription& command, const OptionDescription& option) {
  std::vector<std::string> patterns;
  for (const std::string& name : option.names) {
    patterns.push_back(sh_quoted(command.name + " " + name));
  }
  return fmt::format("{}", fmt::join(patterns, " | "));
}

std::string bash_reply(const std::string& list) {
  return "COMPREPLY=($(compgen -W " + sh_quoted(list) + " -- \"$current\"))";
}

/// What may follow an option, or be an argument.
std::string bash_values(const OptionDescription& d) {
  if (!d.choices.empty()) return bash_reply(words(d.choices)) + "; return";
  return d.is_argument() || d.takes_file() ? "return" : kBashNothing;
}

// ---- zsh ---------------------------------------------------------------------------------------

/// Escapes what ends a description or a message in a specification of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const OptionDescription& d) {
  if (!d.choices.empty()) return "(" + words(d.choices) + ")";
  return d.is_argument() || d.takes_file() ? "_files" : " ";
}

/// One specification for _arguments.
std::string zsh_option(const OptionDescription& d) {
  std::string value;
  if (!d.argument.empty()) value = ":" + zsh_text(d.argument) + ":" + zsh_action(d);
  if (d.is_argument()) return sh_quoted((d.repeated ? "*" : "") + value);
  const std::string exclusion = d.repeated ? "*" : "(" + words(d.names) + ")";
  const std::string rest = sh_quoted("[" + zsh_text(d.text) + "]" + value);
  if (d.names.size() == 1) return sh_quoted(exclusion) + d.names.front() + rest;
  return sh_quoted(exclusion) + fmt::format("{{{}}}", fmt::join(d.names, ",")) + rest;
}

// ---- fish --------------------------------------------------------------------------------------

std::string fish_option(const std::string& condition, const OptionDescription& d) {
  std::string line = "complete -c citcat -n " + condition;
  for (const std::string& name : d.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!d.choices.empty()) {
    line += " -x -a " + fish_quoted(words(d.choices));
  } else if (d.takes_file() || d.is_argument()) {
    line += d.is_argument() ? " -F" : " -r -F";
  } else if (!d.argument.empty()) {
    line += " -x";
  }
  return line + (d.is_argument() ? "" : " -d " + fish_quoted(d.text)) + "\n";
}

}  // namespace

std::string bash_completion(const std::vector<CommandDescription>& commands) {
  std::string script = std::string(kOrigin) + kBashHead;
  script += "  case \"$command $previous\" in\n";
  for (const CommandDescription& command : commands) {
    for (const OptionDescription& d : command.options) {
      if (d.argument.empty()) continue;
      script += fmt::format("    {}) {} ;;\n", bash_pattern(command, d), bash_values(d));
    }
  }
  script += "  esac\n  case $command in\n    '') options=" +
            sh_quoted(command_words(commands) + " --help --version") + " ;;\n";
  for (const CommandDescription& command : commands) {
    std::vector<std::string> names;
    for (const OptionDescription& d : command.options) {
      names.insert(names.end(), d.names.begin(), d.names.end());
    }
    script += fmt::format("    {}) options={} ;;\n", command.name, sh_quoted(words(names)));
  }
  script +=
      "  esac\n  if [[ -z $command || $current == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n    return\n  fi\n"
      "  case $command in\n";
  for (const CommandDescription& command : commands) {
    if (command.arguments.empty() || command.arguments.front().choices.empty()) continue;
    script += fmt::format("    {}) {} ;;\n", command.name, bash_values(command.arguments.front()));
  }
  return script + "  esac\n}\ncomplete -o default -F _citcat citcat\n";
}

std::string zsh_completion(const std::vector<CommandDescription>& commands) {
  std::string script = std::string("#compdef citcat\n") + kOrigin +
                       "_citcat() {\n  local context state state_descr line\n"
                       "  typeset -A opt_args\n  local -a commands=(\n";
  for (const CommandDescription& command : commands) {
    script += "    " + sh_quoted(command.name + ":" + zsh_text(command.summary)) + "\n";
  }
  script +=
      "  )\n  _arguments -C '(- *)'{-h,--help}'[Print help]' '(- *)--version[Print the version]' "
      "\\\n    '1:command:->command' '*::argument:->argument'\n  case $state in\n    command) "
      "_describe command commands ;;\n    argument)\n      case $line[1] in\n";
  for (const CommandDescription& command : commands) {
    script += "        " + command.name + ")\n          _arguments";
    for (const OptionDescription& d : command.options)
      script += " \\\n            " + zsh_option(d);
    for (const OptionDescription& d : command.arguments) {
      script += " \\\n            " + zsh_option(d);
    }
    script += "\n          ;;\n";
  }
  return script + "      esac\n      ;;\n  esac\n}\n_citcat \"$@\"\n";
}

std::string fish_completion(const std::vector<CommandDescription>& commands) {
  std::string script = std::string(kOrigin) + "complete -c citcat -f\n" +
                       "complete -c citcat -n __fish_use_subcommand -s h -l help\n" +
                       "complete -c citcat -n __fish_use_subcommand -l version\n";
  for (const CommandDescription& command : commands) {
    script += fmt::format("complete -c citcat -n __fish_use_subcommand -a {} -d {}\n", command.name,
                          fish_quoted(command.summary));
  }
  for (const CommandDescription& command : commands) {
    const std::string condition = fish_quoted("__fish_seen_subcommand_from " + command.name);
    for (const OptionDescription& d : command.options) script += fish_option(condition, d);
    for (const OptionDescription& d : command.arguments) script += fish_option(condition, d);
  }
  return script;
}

}  // namespace citcat
