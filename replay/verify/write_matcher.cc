#include "replay/verify/write_matcher.h"

#include <algorithm>

namespace citcat {

namespace {

constexpr const char* kNotMade = "the processor wrote memory and the replay did not";

}  // namespace

bool WriteMatcher::covers(PhysAddr a, Position now) const {
  return std::any_of(writes_.begin(), writes_.end(), [&](const Pending& w) {
    const bool later = w.t.has(kPositionKnown) && w.t.position.instruction > now.instruction;
    return !later && a.is_within32(w.t.address, w.t.size);
  });
}

/// Some byte of those that wait has been made. find() looks no further than kWindow.
bool WriteMatcher::any_begun() const {
  const auto end = writes_.begin() + static_cast<std::ptrdiff_t>(std::min(writes_.size(), kWindow));
  return std::any_of(writes_.begin(), end, [](const Pending& w) { return !w.is_whole(); });
}

bool WriteMatcher::all_made() const {
  return std::none_of(writes_.begin(), writes_.end(),
                      [](const Pending& w) { return w.unmatched != 0; });
}

bool WriteMatcher::all_shown_made() const {
  constexpr PhysAddr kLocalApic{0xfee00000};
  constexpr std::uint32_t kLocalApicBytes = 0x1000;
  return std::all_of(writes_.begin(), writes_.end(), [&](const Pending& w) {
    return w.unmatched == 0 || w.t.address.is_within32(kLocalApic, kLocalApicBytes);
  });
}

Mismatch WriteMatcher::unexpected(PhysAddr a, std::uint8_t value) const {
  Mismatch mismatch{
      "the replay writes memory where the processor did not", {}, write_text(a, {&value, 1})};
  if (!writes_.empty()) mismatch.expected = writes_.front().t;
  return mismatch;
}

std::optional<Mismatch> WriteMatcher::observe_order(const Pending& made, PhysAddr a,
                                                    std::uint8_t value) const {
  if (made.t.has(kPositionKnown)) return std::nullopt;
  for (std::size_t i = 0; &writes_[i] != &made; ++i) {
    if (writes_[i].unmatched == 0) continue;
    return Mismatch{"the replay writes memory in another order than the processor did",
                    writes_[i].t, write_text(a, {&value, 1})};
  }
  return std::nullopt;
}

std::optional<Mismatch> WriteMatcher::overdue(Position completed) const {
  if (writes_.empty()) return std::nullopt;
  const Pending& first = writes_.front();
  const bool late =
      first.t.has(kPositionKnown)
          ? first.t.position.instruction <= completed.instruction
          : out_of_order_ && std::any_of(writes_.begin(), writes_.end(),
                                         [](const Pending& w) { return w.unmatched == 0; });
  if (!late) return std::nullopt;
  return Mismatch{kNotMade, first.t, "nothing"};
}

std::optional<Mismatch> WriteMatcher::left_before(Position end) const {
  if (writes_.empty() || !is_left_at(writes_.front().t, end)) return std::nullopt;
  return Mismatch{kNotMade, writes_.front().t, "the end of the replay"};
}

const BusTransaction* WriteMatcher::first_missing() const {
  const auto first = std::find_if(writes_.begin(), writes_.end(),
                                  [](const Pending& w) { return w.unmatched != 0; });
  return first != writes_.end() ? &first->t : nullptr;
}

}  // namespace citcat
