#include "cli/parsing/replay_options.h"

#include "cli/parsing/command_description.h"

namespace citcat {

void define_unchecked(const CommandParser& parser, bool& unchecked) {
  parser.add_flag("--unchecked", unchecked, "Do not compare the replay with the bus");
}

void define_from_start(const CommandParser& parser, bool& from_start) {
  parser.add_flag("--from-start", from_start, "Replay from the beginning, without checkpoints");
}

void define_hints(const CommandParser& parser, std::string& hints) {
  parser
      .add_option("--hints", hints,
                  "Corrections for the replay, written by `explain` and reviewed by you")
      .type_name(kFileType);
}

void define_symbols(const CommandParser& parser, std::vector<std::string>& symbols) {
  parser
      .add_option("--symbols", symbols,
                  "More names for addresses, from System.map, kallsyms or ELF: "
                  "FILE[@BASE][:PROCESS]; may be repeated")
      .repeated();
}

}  // namespace citcat
