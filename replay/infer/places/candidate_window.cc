#include "replay/infer/places/candidate_window.h"

#include <utility>

namespace citcat {

Candidates CandidateWindow::collect(std::size_t interrupt) {
  found_ = {};
  found_.interrupt = interrupt;
  index_.clear();
  registers_.begin(interrupt);
  reads_.begin();
  begin();
  run_through();
  if (found_.window) narrow();
  if (run_.has_cache()) run_.cache().stop_log();
  return std::move(found_);
}

/// Goes through the window again with what its interrupt stored.
void CandidateWindow::narrow() {
  if (found_.groups.size() > 1 && !registers_.learned()) {
    registers_.learn(found_);
    run_again();
  }
  // What fits nowhere was taken for something it is not. The traffic decides alone.
  if (found_.groups.empty() && !registers_.empty()) {
    registers_.forget();
    run_again();
  }
  if (found_.groups.empty() && reads_.asks()) {
    reads_.forget();
    run_again();
  }
}

void CandidateWindow::begin() {
  run_.set_limits(found_.interrupt);
  stopped_at_.reset();
  over_ = found_.endless = found_.too_many = false;
  loop_.begin();
}

void CandidateWindow::begin_log() {
  found_.passed.clear();
  passed_counted_ = passed_boundaries_ = 0;
  if (run_.has_cache()) run_.cache().start_log(found_.passed, run_.position());
}

/// From its first boundary that fits.
void CandidateWindow::run_again() {
  run_.go_back(*found_.window);
  found_.groups.clear();
  index_.clear();
  begin();
  begin_log();
  run_through();
}

/// True at a boundary to be looked at, and after the last one.
bool CandidateWindow::watch(Position now) {
  const std::size_t interrupt = found_.interrupt;
  if (!run_.in_window(interrupt) || stopped_at_ == now) return false;
  const AnchorGate::Progress& made = run_.gate().progress();
  const bool counted = run_.is_counted(interrupt);
  // Where a count names the round of a loop, it need not come to anything new before.
  found_.endless = !counted && loop_.went_round(run_.machine(), made.reads.size(), made.stores);
  over_ = found_.endless ||
          (counted && run_.counts().is_beyond(*run_.interrupt(interrupt).count)) ||
          (found_.window && reads_.is_passed());
  const bool passes = fits() && (!found_.window || (registers_.fits() && reads_.fits()));
  if (!over_ && !passes) return false;
  stopped_at_ = now;
  return true;
}

/// There is no boundary of the window where the run ended, or none after it.
bool CandidateWindow::has_ended(const ReplayReport& report) const {
  if (run_.closed() || run_.interrupted() || over_) return true;
  if (report.end != ReplayReport::End::stopped) return true;
  return !run_.machine().halted() && stopped_at_ != run_.position();
}

void CandidateWindow::run_through() {
  for (;;) {
    const ReplayReport report = run_.go([this](Position now) { return watch(now); });
    if (report.end == ReplayReport::End::diverged && !found_.window) {
      found_.left = report.divergence;
    }
    if (has_ended(report)) return;
    const bool halted = run_.machine().halted();
    if (halted && !(run_.in_window(found_.interrupt) && fits())) return;
    if (!found_.window) {
      found_.window = run_.here();
      reads_.expect(found_.interrupt, *found_.window);
      begin_log();
    }
    if (reads_.fits() && registers_.fits() && !add_boundary()) return;
    if (halted || (found_.groups.size() > 1 && !registers_.learned())) return;
  }
}

/// Boundaries of the window since its first that fits.
std::size_t CandidateWindow::boundaries_passed() {
  for (; passed_counted_ < found_.passed.size(); ++passed_counted_) {
    if (found_.passed[passed_counted_].kind == CacheOp::Kind::boundary) ++passed_boundaries_;
  }
  return passed_boundaries_;
}

/// The boundary the replay is at fits. False when there are too many to look at.
bool CandidateWindow::add_boundary() {
  // Behind a cache a window is long, and what keeps its boundaries apart is looked at cheaply.
  const std::size_t most = run_.has_cache() ? 1 << 14 : 1 << 11;
  CpuState state = run_.machine().save();
  state.msrs.clear();
  state.cpuid.clear();
  const Position now = run_.position();
  // In a window without a cache nothing is stored.
  const std::uint64_t stores = run_.gate().progress().stores;
  const bool plainly = run_.is_counted(found_.interrupt) &&
                       run_.counts().is_plainly(*run_.interrupt(found_.interrupt).count);
  std::vector<std::size_t>& alike = index_[stores << 32 ^ state.eip ^ state.gpr[kEcx]];
  for (const std::size_t i : alike) {
    BoundaryGroup& group = found_.groups[i];
    if (group.stores != stores || !(group.state == state)) continue;
    ++group.count;
    group.plainly_counted |= plainly;
    if (group.others.size() < kListedPositions) group.others.push_back(now);
    return true;
  }
  found_.too_many = found_.groups.size() == most;
  if (found_.too_many) return false;
  alike.push_back(found_.groups.size());
  BoundaryGroup& group = found_.groups.emplace_back();
  group.state = std::move(state);
  group.stores = stores;
  group.first = now;
  group.boundaries = boundaries_passed();
  group.plainly_counted = plainly;
  return true;
}

}  // namespace citcat
