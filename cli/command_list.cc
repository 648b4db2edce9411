#include "cli/command.h"

namespace citcat {

// Each is defined in cli/cmd_<name>.cc. Declared here, because nothing else may use them directly.
extern const Command kImportCommand;

const std::vector<const Command*>& command_list() {
  static const std::vector<const Command*> commands{
      &kImportCommand,
  };
  return commands;
}

}  // namespace citcat
