#include "replay/run/laid_checkpoints.h"

#include <unordered_set>
#include <utility>

namespace citcat {

bool LaidCheckpoints::lay(const Replayer& replayer) {
  const Moment moment = replayer.moment();
  const auto behind = laid_.lower_bound(moment);
  if (behind != laid_.end() && behind->first == moment) return false;
  Replayer::Checkpoint laid = replayer.checkpoint();
  const Memory::SavedPages none;
  const Memory::SavedPages& known =
      behind == laid_.begin() ? none : std::prev(behind)->second.machine.pages;
  auto same = known.begin();
  for (auto& page : laid.machine.pages) {
    while (same != known.end() && (*same)->number < page->number) ++same;
    const bool kept =
        same != known.end() && (*same)->number == page->number &&
        (*same == page || ((*same)->data == page->data && (*same)->defined == page->defined));
    if (kept) {
      page = *same;
    } else {
      ++added_;
    }
  }
  laid_.emplace(moment, std::move(laid));
  return thin_out();
}

std::size_t LaidCheckpoints::frames() const {
  std::unordered_set<const Memory::SavedPage*> held;
  for (const auto& [moment, laid] : laid_) {
    for (const auto& page : laid.machine.pages) held.insert(page.get());
  }
  return held.size();
}

bool LaidCheckpoints::thin_out() {
  bool thinned = false;
  while (counted_ + added_ > max_frames_) {
    counted_ = frames();
    added_ = 0;
    if (counted_ <= max_frames_ || laid_.size() <= 2) return thinned;
    // The beginning stays, and the one just laid wherever that is: its frames are the newest.
    bool goes = true;
    std::erase_if(laid_, [&](const auto&) { return goes = !goes; });
    thinned = true;
    counted_ = frames();
  }
  return thinned;
}

std::optional<Moment> LaidCheckpoints::before(Moment moment) const {
  const auto at = laid_.lower_bound(moment);
  if (at == laid_.begin()) return std::nullopt;
  return std::prev(at)->first;
}

std::optional<Moment> LaidCheckpoints::before_instruction(std::uint64_t instruction) const {
  std::optional<Moment> last;
  for (const auto& [moment, laid] : laid_) {
    if (moment.position.instruction >= instruction) break;
    last = moment;
  }
  return last;
}

}  // namespace citcat
