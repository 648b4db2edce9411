// The options of citcat view for recordings.

#include "cli/comparison_arguments.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/replay_options.h"
#include "cli/view/recording_view.h"

namespace citcat {

void RecordingViewArguments::define(const CommandParser& parser) {
  parser.add_flag("--no-browser", no_browser, "Print the address of the page, but open no browser");
  parser.add_option("--port", port, "Port of the loopback address (default: a free one)");
  parser
      .add_option("--export", output,
                  "Write a page of the instructions from --from to --to to this file instead")
      .type_name(kFileType);
  parser.add_flag("--compare", compare,
                  "Show two recordings side by side, and where they begin to differ");
  define_symbols(parser, symbols);
  define_hints(parser, hints);
  define_comparison(parser, comparison);
  define_unchecked(parser, unchecked);
}

}  // namespace citcat
