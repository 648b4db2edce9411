#include "cli/output_check.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/parsing/command_description.h"
#include "formats/io/error.h"
#include "formats/io/file_identity.h"
#include "tools/host/tool_options.h"

namespace citcat {

namespace {

struct Output {
  std::string option, name;
};

std::vector<Output> outputs_of(const CLI::App& command) {
  std::vector<Output> outputs;
  if (const CLI::Option* const output = command.get_option_no_throw("--output")) {
    if (output->count() != 0) outputs.push_back({"--output", output->as<std::string>()});
  }
  for (const char* const name : {"--tool", "--format"}) {
    const CLI::Option* const option = command.get_option_no_throw(name);
    if (option == nullptr) continue;
    for (const std::string& request : option->results()) {
      if (request.find(':') == std::string::npos) continue;
      // Without one it is standard output.
      outputs.push_back(
          {std::string(name) + ", to", tools::ToolOptions::parse(request).text("to", "-")});
    }
  }
  return outputs;
}

/// Also where a recording of an archive (`FILE@1`) or a range of it (`FILE:0-100`) is named.
std::optional<FileIdentity> input_file(const std::string& argument) {
  const auto whole = identity_of_file(argument);
  const std::size_t end = argument.find_last_of("@:");
  return whole || end == std::string::npos ? whole : identity_of_file(argument.substr(0, end));
}

bool is_read(const CLI::App& command, const FileIdentity& file) {
  for (const CLI::Option* option : command.get_options()) {
    const bool reads = option->get_positional() || option->get_type_name() == kFileType;
    if (!reads || option->check_name("--output")) continue;
    for (const std::string& argument : option->results()) {
      if (input_file(argument) == file) return true;
    }
  }
  return false;
}

}  // namespace

void check_outputs(const CLI::App& command) {
  for (const Output& output : outputs_of(command)) {
    if (output.name.empty()) throw UsageError(output.option + ": the name is empty");
    const auto file = identity_of_file(output.name);
    if (file && is_read(command, *file)) {
      throw UsageError(output.option + ": " + output.name +
                       " is also an input of the command and would be lost");
    }
  }
}

}  // namespace citcat
