// The options of citcat view that are of recordings.

#include "cli/comparison_arguments.h"
#include "cli/parsing/command_description.h"
#include "cli/view/recording_view.h"

namespace citcat {

void RecordingViewArguments::define(const CommandParser& parser) {
  parser.add_flag("--no-browser", no_browser, "Print the address of the page, but open no browser");
  parser.add_option("--port", port, "Port of the loopback address (default: a free one)");
  parser
      .add_option("--export", output,
                  "Write a page of the instructions from --from to --to to this file instead")
      .type_name(kFileType);
  parser
      .add_option("--symbols", symbols,
                  "More names for addresses, from System.map, kallsyms or ELF: "
                  "FILE[@BASE][:PROCESS]; may be repeated")
      .repeated();
  parser.add_option("--hints", hints,
                    "Corrections for the replay, written by `explain` and reviewed by you");
  define_comparison(parser, comparison);
  parser.add_flag("--unchecked", unchecked, "Do not compare the replay with the bus");
}

}  // namespace citcat
