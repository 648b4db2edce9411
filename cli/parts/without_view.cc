// Stand-in for the part "view", which shows recordings in a browser.

#include "cli/view/recording_view.h"
#include "formats/io/error.h"

namespace citcat {

ExitCode view_recordings(const RecordingViewArguments&, const Console&) {
  throw UsageError(
      "this build was made without the part \"view\"; configure it with CITCAT_PARTS=all");
}

}  // namespace citcat
