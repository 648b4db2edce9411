#include "replay/run/plain_places.h"

#include <algorithm>
#include <unordered_set>

#include "replay/verify/verifier.h"

namespace citcat {

void PlainPlaces::take(const Replayer& replayer, Verifier& verifier) {
  places_.push_back(
      std::make_unique<const PlainPlace>(PlainPlace{replayer.checkpoint(), verifier.place()}));
  while (places_.size() > kMost || (!places_.empty() && frames() > kMostFrames)) {
    spacing_ *= 2;
    std::erase_if(places_, [&](const auto& place) { return place->instruction() % spacing_ != 0; });
  }
  next_ += spacing_ - next_ % spacing_;
}

/// Frames that several places share count once. It need not be known how many there are if it would
/// be few enough without that.
std::size_t PlainPlaces::frames() const {
  std::size_t most = 0;
  for (const auto& place : places_) most += place->replayer.machine.pages.size();
  if (most <= kMostFrames) return most;
  std::unordered_set<const Memory::SavedPage*> frames;
  for (const auto& place : places_)
    for (const auto& page : place->replayer.machine.pages) frames.insert(page.get());
  return frames.size();
}

const PlainPlace* PlainPlaces::before(std::uint64_t instruction) const {
  const auto after = std::find_if(places_.begin(), places_.end(), [&](const auto& place) {
    return place->instruction() > instruction;
  });
  return after == places_.begin() ? nullptr : (after - 1)->get();
}

}  // namespace citcat
