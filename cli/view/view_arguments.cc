// The options of citcat view that are of recordings.

#include "cli/comparison_arguments.h"
#include "cli/parsing/command_description.h"
#include "cli/view/recording_view.h"

namespace citcat {

void RecordingViewArguments::define(const CommandParser& parser) {
  parser.add_flag("--no-browser", no_browser,
                  "Only print the address of the page, and open no browser");
  parser.add_option("--port", port, "Port of the loopback address; without it a free one");
  parser
      .add_option("--export", output,
                  "Write the page with the instructions --from to --to as one file instead")
      .type_name(kFileType);
  parser
      .add_option("--symbols", symbols,
                  "Names besides those of the recording: FILE[@BASE][:PROCESS]; may be repeated")
      .repeated();
  parser.add_option(
      "--hints", hints,
      "Corrections to replay with, as `explain` wrote them and somebody reviewed them");
  define_comparison(parser, comparison);
  parser.add_flag("--unchecked", unchecked, "Do not compare with the evidence on the way");
}

}  // namespace citcat
