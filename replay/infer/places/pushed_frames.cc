#include "replay/infer/places/pushed_frames.h"

#include <algorithm>
#include <utility>

namespace citcat {

PushedFrames::PushedFrames(PlacementRun& run, std::vector<PlacedEvent>& events,
                           Backtracker& choices)
    : run_(run), events_(events), choices_(choices) {
  if (!run.has_cache()) return;
  run.cache().on_write_back([this](const CacheFollower::Line& line) { line_written_back(line); });
}

void PushedFrames::watch(std::size_t event, const std::vector<BoundaryGroup>& groups) {
  // Nothing can be learned any more from overwritten frames.
  const std::vector<FrameWatch::Frame>& watched = run_.frames().state().frames;
  std::erase_if(open_, [&](const auto& item) {
    return std::none_of(watched.begin(), watched.end(),
                        [&](const FrameWatch::Frame& f) { return f.id == item.first; });
  });
  open_[event] = groups;
  uncertain_.push_back(event);
  run_.frames().begin(event);
}

FrameWatch::Found PushedFrames::take_wrong() {
  FrameWatch::Found found = std::move(*wrong_);
  wrong_.reset();
  run_.resume();
  return found;
}

void PushedFrames::forget_from(std::size_t event) {
  std::erase_if(open_, [&](const auto& item) { return item.first >= event; });
  std::erase_if(uncertain_, [&](std::size_t other) { return other >= event; });
}

void PushedFrames::line_written_back(const CacheFollower::Line& line) {
  if (run_.supposes() || run_.interrupted()) return;
  const auto bytes = std::span(line.data).first(run_.cache().descriptor().line_bytes);
  for (const FrameWatch::Found& found : run_.frames().written_back(line.traffic.line, bytes)) {
    learn(found);
    if (found_wrong()) return;
  }
  if (!open_.empty()) believe_rest(line.traffic.line, bytes);
}

/// A line that leaves the cache shows part of what an interrupt and its handler stored.
void PushedFrames::learn(const FrameWatch::Found& found) {
  const auto open = open_.find(found.id);
  if (open == open_.end()) return;
  std::vector<BoundaryGroup>& groups = open->second;
  const bool right = shows_memory(found);
  if (!right && can_tell(found)) {
    wrong_ = found;
    run_.stop();
    return;
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
bool PushedFrames::can_tell(const FrameWatch::Found& found) const {
  constexpr std::size_t kMaxTried = 64;
  const Choice* const choice = choices_.of(found.id);
  if (choice == nullptr || choice->left.exhausted) return false;
  if (std::any_of(uncertain_.begin(), uncertain_.end(),
                  [&](std::size_t event) { return event != found.id; })) {
    return false;
  }
  if (!run_.may_spend(found.age, *choice->left.window)) return false;
  const std::vector<BoundaryGroup>& rest = choice->left.groups;
  const auto fitting = std::count_if(
      rest.begin(), rest.end(), [&](const BoundaryGroup& g) { return returns_there(g, found); });
  return static_cast<std::size_t>(fitting) <= kMaxTried;
}

/// What fits the event is fewer than it was.
void PushedFrames::narrowed(std::size_t event) {
  const std::vector<BoundaryGroup>& groups = open_.at(event);
  PlacedEvent& placed = events_[event];
  if (groups.size() == 1 && !placed.more) placed.placement = Placement::unique;
  describe(placed, groups);
  choices_.narrow(event, {groups.begin() + 1, groups.end()});
}

/// The place that was taken is not the right one, and which is, cannot be known: the run goes on
/// with what the bus shows.
void PushedFrames::believe(const FrameWatch::Found& found) {
  uncertain_.clear();
  for (const FrameWatch::Byte& b : found.bytes) {
    // What the handler is going to take back must be its own.
    if (found.returned) run_.machine().correct(b.address, {&b.value, 1});
  }
  for (const FrameWatch::Byte& b : found.bytes) {
    if (found.returned) {
      run_.verifier().memory_changed(b.address);
    } else {
      run_.verifier().forgive_line(b.address);
    }
  }
}

bool PushedFrames::shows_memory(const FrameWatch::Found& found) const {
  return std::all_of(found.bytes.begin(), found.bytes.end(), [&](const FrameWatch::Byte& b) {
    return run_.machine().memory().defined_byte(b.address) == b.value;
  });
}

/// What the handlers of interrupts at uncertain places left is copied and computed with. Lines that
/// differ for it are taken as the bus shows them: where interrupts are is for the lines' order to
/// say.
void PushedFrames::believe_rest(PhysAddr line, std::span<const std::uint8_t> bytes) {
  const Memory& memory = run_.machine().memory();
  const std::vector<FrameWatch::Frame>& frames = run_.frames().state().frames;
  const bool in_handler = std::any_of(frames.begin(), frames.end(),
                                      [](const FrameWatch::Frame& f) { return !f.returned; });
  for (std::uint32_t i = 0; i < bytes.size(); i += 16) {
    const auto part = bytes.subspan(i, std::min<std::size_t>(16, bytes.size() - i));
    bool differs = false;
    for (std::uint32_t k = 0; k < part.size(); ++k) {
      const auto ours = memory.defined_byte(line.plus32(i + k));
      differs |= ours && *ours != part[k];
    }
    if (!differs) continue;
    if (in_handler) {
      run_.verifier().forgive_line(line.plus32(i));
    } else {
      run_.machine().correct(line.plus32(i), part);
      run_.verifier().memory_changed(line.plus32(i));
    }
  }
}

}  // namespace citcat
