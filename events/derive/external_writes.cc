#include "events/derive/external_writes.h"

#include <cstddef>

namespace citcat {

namespace {

/// A block of the largest disk transfer that one command makes (256 sectors).
constexpr std::size_t kMaxMergedBytes = 131072;

bool not_after(const BusAnchor& a, const BusAnchor& b) {
  return a.writes <= b.writes && a.io <= b.io && a.interrupts <= b.interrupts && a.reads <= b.reads;
}

bool continues(const ExternalWrite& first, const ExternalWrite& next) {
  return next.address.value == first.address.value + first.data.size() &&
         first.data.size() + next.data.size() <= kMaxMergedBytes &&
         first.position_known == next.position_known && not_after(next.window_begin, first.anchor);
}

}  // namespace

ExternalWrites merge_external_writes(const ExternalWrites& writes) {
  ExternalWrites merged;
  ExternalWrite last;
  bool some = false;
  for (const ExternalWrite& write : writes) {
    if (some && continues(last, write)) {
      last.data.insert(last.data.end(), write.data.begin(), write.data.end());
      continue;
    }
    if (some) merged.push_back(last);
    last = write;
    some = true;
  }
  if (some) merged.push_back(last);
  return merged;
}

}  // namespace citcat
