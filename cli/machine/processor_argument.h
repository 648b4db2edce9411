#pragma once
// --processor: which of several processors a command is about.

#include <optional>
#include <string>
#include <vector>

#include "cli/parsing/command_parser.h"
#include "cli/range_arguments.h"
#include "events/archive/machine_file.h"

namespace citcat {

struct ProcessorArgument {
  std::optional<unsigned> number;

  void define(const CommandParser& parser);
  /// Takes the processors off positions "P:N" and "P:N+K". UsageError when they name several, or
  /// another one than the option does.
  void take_from(RangeArguments& range);
  void take_from(std::string& position);
  /// The name of the recording that is meant. UsageError where there is no such processor.
  std::string name(const std::string& recording) const;

 private:
  std::string said_;  ///< the position that names one
};

/// The machine of an archive that can be read more than once; nothing for one processor.
std::optional<MachineFile> find_machine(const std::string& recording);
/// Whether a recording is of several processors, or of one of several.
bool names_processor_of_several(const std::string& recording);
/// The names of the recordings of all its processors; of one processor, of what names one of
/// several, and of what can be read only once, the name itself.
std::vector<std::string> names_of_processors(const std::string& recording);

}  // namespace citcat
