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

const char* internal_read_name(InternalRead::Op op) {
  switch (op) {
    case InternalRead::Op::rdtsc:
      return "RDTSC";
    case InternalRead::Op::rdmsr:
      return "RDMSR";
    case InternalRead::Op::wrmsr:
      return "WRMSR";
    case InternalRead::Op::cpuid:
      return "CPUID";
    case InternalRead::Op::rdpmc:
      return "RDPMC";
  }
  return "?";
}

}  // namespace citcat
