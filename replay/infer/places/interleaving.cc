#include "replay/infer/places/interleaving.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace citcat {

namespace {

/// A cache that follows lines of the bus.
struct Follower {
  CacheModel model;
  std::size_t next = 0;  ///< line
  bool fits = true;
  bool at_end = false;  ///< no more lines are known

  bool goes_on() const { return fits && !at_end; }
  bool operator==(const Follower& other) const {
    return fits == other.fits && at_end == other.at_end && next == other.next &&
           model.same_lines(other.model);
  }
};

using Lines = std::span<const CacheFollower::Line>;

void settle(Follower& f, Lines lines) {
  std::vector<CacheTraffic>& batch = f.model.traffic();
  if (batch.empty()) return;
  const std::vector<CacheTraffic> moved = std::exchange(batch, {});
  while (f.next < lines.size() && CacheFollower::snoop_by_others(f.model, lines.subspan(f.next))) {
    ++f.next;
  }
  f.at_end = lines.size() - f.next < moved.size();
  if (f.at_end) return;
  f.fits = !CacheFollower::first_difference(moved, lines.subspan(f.next, moved.size()));
  f.next += moved.size();
}

/// Goes on with [from, to) of a log as far as the lines fit.
void follow(Follower& f, const CacheLog& log, std::size_t from, std::size_t to, Lines lines) {
  for (std::size_t i = from; i < to && f.goes_on(); ++i) {
    if (log[i].kind == CacheOp::Kind::boundary) {
      settle(f, lines);
    } else {
      apply(log[i], f.model);
    }
  }
}

/// What came of caches in certain states, so that equal ones are followed once. Neighbouring places
/// have equal ones, and the rounds of a loop: the latest are enough.
class Known {
 public:
  const Follower* find(const Follower& before) const {
    const auto run = std::find_if(runs_.rbegin(), runs_.rend(),
                                  [&](const auto& r) { return r.first == before; });
    return run != runs_.rend() ? &run->second : nullptr;
  }
  const Follower& add(Follower before, Follower after) {
    constexpr std::size_t kMax = 64;
    if (runs_.size() == kMax) runs_.pop_front();
    return runs_.emplace_back(std::move(before), std::move(after)).second;
  }

 private:
  std::deque<std::pair<Follower, Follower>> runs_;
};

/// Where each stretch between two boundaries of a log begins, from `from` on.
std::vector<std::size_t> stretches(const CacheLog& log, std::size_t from) {
  std::vector<std::size_t> found{from};
  for (std::size_t i = from; i < log.size(); ++i) {
    if (log[i].kind == CacheOp::Kind::boundary) found.push_back(i + 1);
  }
  return found;
}

/// Follows one run after the other.
class Interleaver {
 public:
  Interleaver(const CacheModel& model, const Interleaved& run, Lines lines, std::size_t last)
      : run_(run),
        lines_(lines),
        before_(stretches(run.before, 0)),
        after_(stretches(run.after, run.returned)),
        common_(resumes(last)),
        at_first_{model, 0, true, false} {}

  bool fits(const InterruptPlace& place) {
    const std::size_t to = before_[std::min(place.boundaries, before_.size() - 1)];
    for (; done_ < to; ++done_) {
      const CacheOp& op = run_.before[done_];
      apply(op, at_first_.model);
      if (op.kind == CacheOp::Kind::fetch) fetched_ = op;
    }
    at_first_.model.traffic().clear();
    Follower f = go_on(handlers_, at_first_, 0, run_.returned);
    if (place.in_repeat && f.goes_on()) apply(fetched_, f.model);
    // What is left of the code before all have come to the same place.
    follow(f, run_.after, resumes(place.boundaries), common_, lines_);
    return go_on(rests_, f, common_, run_.after.size()).fits;
  }

 private:
  std::size_t resumes(std::size_t boundaries) const {
    return boundaries < after_.size() ? after_[boundaries] : run_.after.size();
  }
  Follower go_on(Known& known, const Follower& from, std::size_t begin, std::size_t end) {
    if (!from.goes_on()) return from;
    if (const Follower* to = known.find(from)) return *to;
    Follower f = from;
    follow(f, run_.after, begin, end, lines_);
    return known.add(from, std::move(f));
  }

  const Interleaved& run_;
  Lines lines_;
  std::vector<std::size_t> before_, after_;
  std::size_t common_;  ///< in run_.after: where all places have come together
  Follower at_first_;   ///< at the place looked at, without the interrupt
  std::size_t done_ = 0;
  CacheOp fetched_;
  Known handlers_, rests_;
};

}  // namespace

std::vector<bool> places_that_fit(const CacheModel& model, const Interleaved& run, Lines lines,
                                  std::span<const InterruptPlace> places) {
  std::vector<bool> fit;
  if (places.empty()) return fit;
  Interleaver interleaver(model, run, lines, places.back().boundaries);
  for (const InterruptPlace& place : places) fit.push_back(interleaver.fits(place));
  return fit;
}

}  // namespace citcat
