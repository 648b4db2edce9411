// Of the search for interrupts: what the frames that they push tell.

#include <algorithm>
#include <utility>

#include "replay/infer/place_search.h"

namespace citcat {

namespace {

/// The return address that a line shows, or as much of it, is that of the boundary.
bool returns_there(const BoundaryGroup& g, const FrameWatch::Found& found) {
  return (g.state.eip & found.eip_mask) == found.eip;
}

}  // namespace

void PlaceSearch::watch_frame(std::size_t event) {
  // Of frames that were overwritten nothing can be learned any more.
  const std::vector<FrameWatch::Frame>& watched = frames_.state().frames;
  std::erase_if(open_, [&](const auto& item) {
    return std::none_of(watched.begin(), watched.end(),
                        [&](const FrameWatch::Frame& f) { return f.id == item.first; });
  });
  open_[event] = groups_;
  uncertain_.push_back(event);
  frames_.begin(event);
}

PlaceSearch::Choice* PlaceSearch::choice_of(std::size_t event) {
  const auto choice = std::find_if(choices_.begin(), choices_.end(),
                                   [event](const Choice& c) { return c.event == event; });
  return choice != choices_.end() ? &*choice : nullptr;
}

/// A line that leaves the cache shows part of what an interrupt and its handler stored.
void PlaceSearch::learn_frame(const FrameWatch::Found& found) {
  const auto open = open_.find(found.id);
  if (open == open_.end() || mode_ == Mode::log) return;
  std::vector<BoundaryGroup>& groups = open->second;
  const bool right = shows_memory(found);
  if (!right && can_tell(found)) {
    wrong_event_ = found.id;
    wrong_ = found;
    throw EvidenceEnd{};
  }
  const Position taken = groups.front().first;
  std::vector<BoundaryGroup> left = groups;
  std::erase_if(left, [&](const BoundaryGroup& g) { return !returns_there(g, found); });
  if (left.size() != groups.size() && !left.empty() && left.front().first == taken) {
    groups = std::move(left);
    narrowed(found.id);
  }
  if (!right) believe(found);
}

/// Whether it is worth trying which of the places left gives what the line shows. Linux mixes the
/// return addresses of all interrupts into one number; of several that are not certain none can be
/// told by it.
bool PlaceSearch::can_tell(const FrameWatch::Found& found) const {
  constexpr std::size_t kMaxTried = 64;
  const Choice* const choice = choice_of(found.id);
  if (choice == nullptr || choice->exhausted) return false;
  if (std::any_of(uncertain_.begin(), uncertain_.end(),
                  [&](std::size_t event) { return event != found.id; })) {
    return false;
  }
  if (!may_spend(found.age, choice->window)) return false;
  const auto fitting =
      std::count_if(choice->rest.begin(), choice->rest.end(),
                    [&](const BoundaryGroup& g) { return returns_there(g, found); });
  return static_cast<std::size_t>(fitting) <= kMaxTried;
}

/// What fits event `number` is fewer than it was.
void PlaceSearch::narrowed(std::size_t number) {
  const std::vector<BoundaryGroup>& groups = open_.at(number);
  PlacedEvent& event = report_.events[number];
  if (groups.size() == 1 && !event.more) event.placement = Placement::unique;
  describe(event, groups);
  Choice* const choice = choice_of(number);
  if (choice == nullptr) return;
  choice->rest.assign(groups.begin() + 1, groups.end());
  if (choice->rest.empty()) choices_.erase(choices_.begin() + (choice - choices_.data()));
}

/// The place that was taken is not the right one, and which is, cannot be told: the run goes on
/// with what the bus shows.
void PlaceSearch::believe(const FrameWatch::Found& found) {
  uncertain_.clear();
  for (const FrameWatch::Byte& b : found.bytes) {
    // What the handler is going to take back must be its own.
    if (found.returned) replayer_->machine().memory().external_write(b.address, {&b.value, 1});
  }
  for (const FrameWatch::Byte& b : found.bytes) {
    if (found.returned) {
      verifier_->memory_changed(b.address);
    } else {
      verifier_->forgive_line(b.address);
    }
  }
}

/// The line holds what memory holds.
bool PlaceSearch::shows_memory(const FrameWatch::Found& found) const {
  return std::all_of(found.bytes.begin(), found.bytes.end(), [&](const FrameWatch::Byte& b) {
    return replayer_->machine().memory().defined_byte(b.address) == b.value;
  });
}

/// The handler of an interrupt at `group` leaves the bytes that were found.
bool PlaceSearch::leaves(const BoundaryGroup& group, const FrameWatch::Found& found) {
  log_until_ = found.returned ? ~std::uint64_t{0} : found.age;
  (void)log_handler(group, 1 << 14);
  log_until_.reset();
  return shows_memory(found);
}

/// What the handlers of interrupts at uncertain places left is copied and computed with. Lines that
/// differ for it are taken as the bus shows them: where interrupts are is for the lines' order to
/// say.
void PlaceSearch::believe_rest(PhysAddr line, std::span<const std::uint8_t> bytes) {
  Memory& memory = replayer_->machine().memory();
  const bool in_handler = std::any_of(frames_.state().frames.begin(), frames_.state().frames.end(),
                                      [](const FrameWatch::Frame& f) { return !f.returned; });
  for (std::uint32_t i = 0; i < bytes.size(); i += 16) {
    const auto part = bytes.subspan(i, std::min<std::size_t>(16, bytes.size() - i));
    bool differs = false;
    for (std::uint32_t k = 0; k < part.size(); ++k) {
      const auto ours = memory.defined_byte(line + i + k);
      differs |= ours && *ours != part[k];
    }
    if (!differs) continue;
    if (in_handler) {
      verifier_->forgive_line(line + i);
    } else {
      memory.external_write(line + i, part);
      verifier_->memory_changed(line + i);
    }
  }
}

/// Goes back to before the interrupt that a line has shown to be elsewhere, and takes the first
/// place whose handler leaves what it shows. Where there is none, something before is not as it
/// was, and the line is believed.
bool PlaceSearch::correct() {
  const std::size_t number = *std::exchange(wrong_event_, std::nullopt);
  const FrameWatch::Found found = std::exchange(wrong_, {});
  Choice* const choice = choice_of(number);
  choices_.erase(choices_.begin() + (choice - choices_.data()) + 1, choices_.end());
  Choice& last = choices_.back();
  std::vector<BoundaryGroup> left;
  target_ = last.interrupt;
  window_ = last.window;
  passed_ = last.passed;
  for (const BoundaryGroup& g : last.rest) {
    if (!returns_there(g, found)) continue;
    if (!may_spend(found.age, *window_) || leaves(g, found)) left.push_back(g);
  }
  last.exhausted = left.empty();
  if (left.empty()) {
    left = std::move(last.rest);
    left.insert(left.begin(), last.taken);
  }
  last.rest = std::move(left);
  take_back();
  return true;
}

}  // namespace citcat
