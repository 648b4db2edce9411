#include "events/recording.h"

namespace citcat {

std::string_view ending_name(Ending ending) {
  switch (ending) {
    case Ending::unknown:
      return "unknown";
    case Ending::capture_end:
      return "capture end";
    case Ending::stop:
      return "stop";
    case Ending::marker:
      return "stop marker";
    case Ending::source_gone:
      return "source gone";
    case Ending::storage_full:
      return "storage full";
    case Ending::by_hand:
      return "by hand";
    case Ending::monitor_failed:
      return "monitor failed";
  }
  return "?";
}

}  // namespace citcat
