// Of the search for interrupts: what the lines of a write-back cache tell.

#include <algorithm>
#include <cstddef>
#include <utility>

#include "replay/infer/place_search.h"

namespace citcat {

namespace {

/// Number of the frame of a run that only looks what the handler does.
constexpr std::size_t kLoggedFrame = ~std::size_t{0};

/// Which stack the frame goes to, and where: from user code always to the same place.
std::pair<unsigned, std::uint32_t> stack_of(const BoundaryGroup& g) {
  const unsigned level = g.state.segment[kCs].selector & 3;
  const bool is_protected = (g.state.cr0 & 1) != 0;
  return {level, is_protected && level != 0 ? 0 : static_cast<std::uint32_t>(g.state.gpr[kEsp])};
}

/// Where the stretch of a log begins that comes after so many boundaries.
std::size_t stretch(const CacheLog& log, std::size_t boundaries) {
  std::size_t i = 0;
  for (; boundaries != 0 && i < log.size(); ++i) {
    if (log[i].kind == CacheOp::Kind::boundary) --boundaries;
  }
  return i;
}

}  // namespace

/// Boundaries of the window since its first that fits.
std::size_t PlaceSearch::boundaries_passed() {
  for (; passed_counted_ < passed_.size(); ++passed_counted_) {
    if (passed_[passed_counted_].kind == CacheOp::Kind::boundary) ++passed_boundaries_;
  }
  return passed_boundaries_;
}

/// Notes when the handler has come back to where it interrupted; true when enough is known.
bool PlaceSearch::watch_handler(Position now) {
  if (now <= logged_->first && replayer_->next_interrupt() == target_) return false;
  const Engine& engine = replayer_->machine().engine();
  const CpuState& state = logged_->state;
  if (log_.returned == 0 && now > logged_->first && engine.eip() == state.eip &&
      engine.gpr(kEsp) == state.gpr[kEsp] &&
      engine.segment_selector(kCs) == state.segment[kCs].selector) {
    log_.returned = log_.after.size();
  }
  if (log_until_) {
    const FrameWatch::Frame& frame = frames_.state().frames.back();
    if (frame.returned || frame.age >= *log_until_) return true;
  }
  return now.instruction >= stop_instruction_;
}

/// What the cache hears with the interrupt at `group`, whatever lines that moves.
Interleaved PlaceSearch::log_handler(const BoundaryGroup& group, std::uint64_t instructions) {
  ++report_.tried;
  go_back(*window_);
  set_position(target_, group.first);
  mode_ = Mode::log;
  logged_ = &group;
  frames_.begin(kLoggedFrame);
  log_ = {};
  log_begins_ = 0;
  stop_instruction_ = group.first.instruction + instructions;
  const bool next = target_ + 1 < schedule_.interrupts.size() &&
                    !schedule_.interrupts[target_ + 1].position_known;
  gate_.set_limit(next ? &schedule_.interrupts[target_ + 1].anchor : nullptr);
  sinks_.mute(verifier_.get());
  cache_->ignore_bus(true);
  cache_->start_log(log_.after, window_->replayer.machine.position);
  go();
  cache_->stop_log();
  cache_->ignore_bus(false);
  sinks_.mute(nullptr);
  set_position(target_, std::nullopt);
  if (log_.returned == 0) log_.returned = log_.after.size();
  // Up to the interrupt the log is that of the window.
  const auto skipped = static_cast<std::ptrdiff_t>(log_begins_);
  log_.after.erase(log_.after.begin(), log_.after.begin() + skipped);
  log_.returned -= static_cast<std::size_t>(skipped);
  log_.before.assign(
      passed_.begin() + static_cast<std::ptrdiff_t>(stretch(passed_, group.boundaries)),
      passed_.end());
  return std::move(log_);
}

/// Those of `groups` that fit, which have one stack: their handlers make the same accesses.
std::vector<BoundaryGroup> PlaceSearch::fitting_lines(const std::vector<BoundaryGroup>& groups,
                                                      std::uint64_t instructions) {
  constexpr std::size_t kMaxLines = 1 << 14;
  const BoundaryGroup& first = groups.front();
  const Interleaved run = log_handler(first, instructions);
  go_back(*window_);
  const std::uint64_t end = target_ + 1 < schedule_.interrupts.size()
                                ? schedule_.interrupts[target_ + 1].transaction
                                : ~std::uint64_t{0};
  const std::vector<CacheFollower::Line> lines = cache_->next_lines(kMaxLines, end);
  CacheModel model = cache_->model();
  const std::size_t skipped = stretch(passed_, first.boundaries);
  for (std::size_t i = 0; i < skipped; ++i) apply(passed_[i], model);
  model.traffic().clear();
  std::vector<InterruptPlace> places;
  for (const BoundaryGroup& g : groups) {
    places.push_back({g.boundaries - first.boundaries, g.first.iteration != 0});
  }
  const std::vector<bool> fit = places_that_fit(model, run, lines, places);
  std::vector<BoundaryGroup> left;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (fit[i]) left.push_back(groups[i]);
  }
  return left;
}

/// The frame goes to the same place from the first of what is left as from the last.
bool PlaceSearch::have_one_stack() const {
  return stack_of(groups_.front()) == stack_of(groups_.back());
}

void PlaceSearch::keep_what_lines_fit(bool far) {
  constexpr std::size_t kMaxStacks = 256;
  constexpr std::uint64_t kNear = 1 << 12, kFar = 1 << 14;
  const auto earlier = [](const BoundaryGroup& a, const BoundaryGroup& b) {
    return a.first < b.first;
  };
  std::vector<BoundaryGroup> left, groups = groups_;
  std::sort(groups.begin(), groups.end(), earlier);
  for (std::size_t stacks = 0; !groups.empty(); ++stacks) {
    const auto others = std::stable_partition(
        groups.begin(), groups.end(), [first = stack_of(groups.front())](const BoundaryGroup& g) {
          return stack_of(g) == first;
        });
    std::vector<BoundaryGroup> here(groups.begin(), others);
    groups.erase(groups.begin(), others);
    const std::uint64_t instructions = far ? kFar : kNear;
    const std::uint64_t before =
        here.front().first.instruction - window_->replayer.machine.position.instruction;
    if (stacks < kMaxStacks && may_spend(before + instructions, *window_)) {
      here = fitting_lines(here, instructions);
    }
    left.insert(left.end(), here.begin(), here.end());
  }
  // Where nothing fits, something else is wrong; the run from here on will say what.
  if (left.empty()) return;
  std::sort(left.begin(), left.end(), earlier);
  groups_ = std::move(left);
}

}  // namespace citcat
