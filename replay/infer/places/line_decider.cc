#include "replay/infer/places/line_decider.h"

#include <algorithm>
#include <utility>

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

bool is_earlier(const BoundaryGroup& a, const BoundaryGroup& b) { return a.first < b.first; }

}  // namespace

bool LineDecider::have_one_stack(const std::vector<BoundaryGroup>& groups) {
  return stack_of(groups.front()) == stack_of(groups.back());
}

/// Notes when the handler has come back to where it interrupted; true when enough is known.
bool LineDecider::watch_handler(Position now, const Candidates& candidates,
                                const BoundaryGroup& group, const End& end) {
  if (now <= group.first && run_.next_interrupt() == candidates.interrupt) return false;
  const Engine& engine = run_.machine().engine();
  const CpuState& state = group.state;
  if (log_.returned == 0 && now > group.first && engine.eip() == state.eip &&
      engine.gpr(kEsp) == state.gpr[kEsp] &&
      engine.segment_selector(kCs) == state.segment[kCs].selector) {
    log_.returned = log_.after.size();
  }
  if (end.with_frame) {
    const FrameWatch::Frame& frame = run_.frames().state().frames.back();
    if (frame.returned || frame.age >= end.age) return true;
  }
  return now.instruction >= group.first.instruction + end.instructions;
}

/// What the cache hears with the interrupt at `group`, whatever lines that moves.
Interleaved LineDecider::log_handler(const Candidates& candidates, const BoundaryGroup& group,
                                     End end) {
  const std::size_t interrupt = candidates.interrupt;
  run_.effort().note_try();
  run_.go_back(*candidates.window);
  run_.set_position(interrupt, group.first);
  run_.frames().begin(kLoggedFrame);
  log_ = {};
  log_begins_ = 0;
  run_.gate().set_limit(run_.limit_behind(interrupt));
  run_.gate().on_delivery([this] {
    if (log_begins_ == 0) log_begins_ = log_.after.size();
  });
  run_.suppose(true);
  run_.cache().start_log(log_.after, candidates.window->position());
  run_.go([&](Position now) { return watch_handler(now, candidates, group, end); });
  run_.cache().stop_log();
  run_.suppose(false);
  run_.gate().on_delivery({});
  run_.set_position(interrupt, std::nullopt);
  if (log_.returned == 0) log_.returned = log_.after.size();
  // Up to the interrupt the log is that of the window.
  const auto skipped = static_cast<std::ptrdiff_t>(log_begins_);
  log_.after.erase(log_.after.begin(), log_.after.begin() + skipped);
  log_.returned -= static_cast<std::size_t>(skipped);
  const CacheLog& passed = candidates.passed;
  log_.before.assign(
      passed.begin() + static_cast<std::ptrdiff_t>(stretch(passed, group.boundaries)),
      passed.end());
  return std::move(log_);
}

void LineDecider::run_handler(const Candidates& candidates, const BoundaryGroup& group,
                              std::optional<std::uint64_t> age) {
  (void)log_handler(candidates, group, {1 << 14, true, age.value_or(~std::uint64_t{0})});
}

/// Those of `groups` that fit, which have one stack: their handlers make the same accesses.
std::vector<BoundaryGroup> LineDecider::fitting(const Candidates& candidates,
                                                const std::vector<BoundaryGroup>& groups,
                                                std::uint64_t instructions) {
  constexpr std::size_t kMaxLines = 1 << 14;
  const BoundaryGroup& first = groups.front();
  const Interleaved run = log_handler(candidates, first, {instructions});
  run_.go_back(*candidates.window);
  const std::size_t next = candidates.interrupt + 1;
  const std::uint64_t end = next < run_.schedule().interrupts.size()
                                ? run_.interrupt(next).transaction
                                : ~std::uint64_t{0};
  const std::vector<CacheFollower::Line> lines = run_.cache().next_lines(kMaxLines, end);
  CacheModel model = run_.cache().model();
  const std::size_t skipped = stretch(candidates.passed, first.boundaries);
  for (std::size_t i = 0; i < skipped; ++i) apply(candidates.passed[i], model);
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

void LineDecider::decide(Candidates& candidates, bool far) {
  constexpr std::size_t kMaxStacks = 256;
  constexpr std::uint64_t kNear = 1 << 12, kFar = 1 << 14;
  const std::uint64_t instructions = far ? kFar : kNear;
  std::vector<BoundaryGroup> left, groups = candidates.groups;
  std::sort(groups.begin(), groups.end(), is_earlier);
  for (std::size_t stacks = 0; !groups.empty(); ++stacks) {
    const auto others = std::stable_partition(
        groups.begin(), groups.end(), [first = stack_of(groups.front())](const BoundaryGroup& g) {
          return stack_of(g) == first;
        });
    std::vector<BoundaryGroup> here(groups.begin(), others);
    groups.erase(groups.begin(), others);
    const std::uint64_t before =
        here.front().first.instruction - candidates.window->position().instruction;
    if (stacks < kMaxStacks && run_.may_spend(before + instructions, *candidates.window)) {
      here = fitting(candidates, here, instructions);
    }
    if (run_.interrupted()) return;
    left.insert(left.end(), here.begin(), here.end());
  }
  // Where nothing fits, something else is wrong; the run from here on will say what.
  if (left.empty()) return;
  std::sort(left.begin(), left.end(), is_earlier);
  candidates.groups = std::move(left);
}

}  // namespace citcat
