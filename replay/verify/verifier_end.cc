// What has to be true of a comparison when the replay has ended.

#include <algorithm>

#include "replay/verify/verifier.h"

namespace citcat {

void Verifier::finish(Position end) {
  while (pull() && !has_position_beyond(end)) {
  }
  if (keeps_model_) model_external_writes(~std::uint64_t{0});
  const auto left = [&](const BusTransaction& t) {
    return !t.has(kPositionKnown) || t.position < end;
  };
  if (!writes_.empty() && left(writes_.front().t)) {
    diverged(end, "the processor wrote memory and the replay did not", &writes_.front().t,
             "the end of the replay");
  }
  if (!io_.empty() && left(io_.front())) {
    diverged(end, "the processor accessed a port and the replay did not", &io_.front(),
             "the end of the replay");
  }
  if (!specials_.empty() && left(specials_.front())) {
    diverged(end, "the processor made a special cycle and the replay did not", &specials_.front(),
             "the end of the replay");
  }
  match_branches();
  if (!starts_.empty() && starts_.front().has(kBranchTarget) && left(starts_.front())) {
    diverged(end, kBranchNotTaken, &starts_.front(), "the end of the replay");
  }
}

ReplayReport Verifier::finish(ReplayReport report) {
  if (report.end != ReplayReport::End::complete) return report;
  try {
    finish(machine_->position());
  } catch (const ReplayStopped& stop) {
    report.end = ReplayReport::End::diverged;
    report.divergence = make_divergence(stop);
  }
  return report;
}

std::optional<std::uint64_t> Verifier::first_missing() const {
  std::optional<std::uint64_t> first;
  for (const PendingWrite& w : writes_) {
    if (w.unmatched == 0) continue;
    first = w.t.index;
    break;
  }
  if (!io_.empty()) first = std::min(first.value_or(io_.front().index), io_.front().index);
  return first;
}

FinalMemory Verifier::compare_final(const MemoryImage* captured) const {
  constexpr std::uint32_t kTogether = 64;  // bytes that are compared at once first
  FinalMemory result;
  const MemoryImage& reference = captured != nullptr ? *captured : model_;
  const Memory& memory = machine_->memory();
  for (const auto& [number, page] : reference.pages()) {
    const auto next = [&](std::uint32_t i) {
      return static_cast<std::uint32_t>(page->valid.next(i));
    };
    for (std::uint32_t i = next(0); i < kPageSize; i = next(i + 1)) {
      const PhysAddr at{number * kPageSize + i};
      if (i % kTogether == 0 && page->valid.all(i, kTogether) &&
          memory.holds(at, {&page->data[i], kTogether})) {
        result.bytes += kTogether;
        i += kTogether - 1;
        continue;
      }
      bool known = false, equal = false;
      memory.for_each_alias(at, [&](PhysAddr alias) {
        const auto byte = memory.defined_byte(alias);
        known |= byte.has_value();
        equal |= byte == page->data[i];
      });
      if (!known) continue;
      if (!equal && beyond_end_.count(at.value) != 0) continue;
      if (!equal && captured != nullptr && device_bytes_.count(at.value) != 0) {
        ++result.device;
        continue;
      }
      ++result.bytes;
      if (equal) continue;
      if (captured != nullptr && may_differ(at, page->data[i])) {
        ++result.adopted;
        continue;
      }
      if (captured != nullptr && !plain_ && !unconfirmed_lines_.contains(line_of(at.value))) {
        ++result.external_unseen;
        continue;
      }
      ++result.different;
      constexpr std::size_t kMaxListed = 4096;
      if (result.differences.size() < kMaxListed) result.differences.push_back(at);
    }
  }
  return result;
}

}  // namespace citcat
