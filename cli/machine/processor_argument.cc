#include "cli/machine/processor_argument.h"

#include "events/position_text.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {

void ProcessorArgument::define(const CommandParser& parser) {
  parser.add_option("--processor", number, "Number of the processor, if the recording has several");
}

void ProcessorArgument::take_from(RangeArguments& range) {
  take_from(range.from);
  take_from(range.to);
}

void ProcessorArgument::take_from(std::string& position) {
  const std::optional<ProcessorPlace> meant = split_processor(position);
  if (!meant) {
    throw UsageError("expected a position, P:N or P:N+K with the number of a processor, found " +
                     position);
  }
  if (!meant->processor) return;
  if (number && *number != *meant->processor) {
    throw UsageError(position + " is a position of processor " + std::to_string(*meant->processor) +
                     ", but processor " + std::to_string(*number) + " was named before");
  }
  number = meant->processor;
  said_ = position;
  position = meant->place;
}

std::optional<MachineFile> find_machine(const std::string& recording) {
  if (recording == "-" || is_once_input(recording)) return std::nullopt;
  return MachineFile::find(recording);
}

bool names_processor_of_several(const std::string& recording) {
  return find_machine(parse_recording_name(recording).path).has_value();
}

std::vector<std::string> names_of_processors(const std::string& recording) {
  const std::optional<MachineFile> machine = find_machine(recording);
  if (!machine) return {recording};
  std::vector<std::string> names;
  for (std::size_t p = 0; p < machine->processors(); ++p) names.push_back(machine->name(p));
  return names;
}

std::string ProcessorArgument::name(const std::string& recording) const {
  if (!number) return recording;
  const auto named = parse_recording_name(recording).number;
  const bool several = named && names_processor_of_several(recording);
  if (several && *named == *number) return recording;
  if (several) {
    throw UsageError((said_.empty() ? "--processor " + std::to_string(*number) : said_) + ": " +
                     recording + " names another processor already");
  }
  // A recording that has a number by itself is of one processor here.
  const std::string its = recording + "@" + std::to_string(*number);
  if (!named && (recording == "-" || is_once_input(recording))) return its;
  const std::optional<MachineFile> machine = named ? std::nullopt : find_machine(recording);
  const std::size_t count = machine ? machine->processors() : 1;
  if (*number >= count) {
    throw UsageError("--processor " + std::to_string(*number) + ": " + recording + " has " +
                     std::to_string(count) +
                     (count == 1 ? " processor, number 0" : " processors, numbered from 0"));
  }
  return machine ? its : recording;
}

}  // namespace citcat
