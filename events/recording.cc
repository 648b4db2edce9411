#include "events/recording.h"

#include <array>

#include "events/access_run.h"

namespace citcat {

void EvidenceWriter::write_run(const AccessRun& run) {
  std::array<BusTransaction, AccessRun::kMax> transactions;
  for (std::size_t i = 0; i < run.size(); ++i) {
    transactions[i] = run.at(i);
    if (transactions[i].op != BusOp::data_write) transactions[i].data.fill(0);
  }
  write_all(std::span(transactions).first(run.size()));
}

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

Recording Recording::clone() const {
  Recording copy;
  copy.set_schedule(*this);
  static_cast<RecordingFacts&>(copy) = *this;
  copy.image = image.clone();
  return copy;
}

}  // namespace citcat
