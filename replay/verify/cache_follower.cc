#include "replay/verify/cache_follower.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>
#include <vector>

namespace citcat {

namespace {

/// Whether lines are filled while CR0.CD is set: the first access to memory that can be cached
/// tells.
bool fills_at_once(EvidenceReader& evidence) {
  BusTransaction t;
  while (evidence.next(t)) {
    if (!t.is_memory() || t.has(kUncacheable) || t.has(kStateWindow)) continue;
    return t.has(kLine);
  }
  return false;
}

std::string text(const CacheTraffic& t) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%s of line %08" PRIx64, cache_traffic_name(t.kind),
                t.line.value);
  return buffer;
}

}  // namespace

CacheFollower::CacheFollower(const Recording& recording, const EvidenceSource& evidence,
                             const CacheDescriptor& descriptor)
    : CacheAccesses(recording, descriptor), evidence_(evidence) {
  if (fills_at_once(*evidence())) ignore_cd();
}

bool CacheFollower::read_ahead() {
  if (ahead_) return true;
  BusTransaction t;
  if (!evidence_.next(t)) return false;
  ahead_ = t;
  return true;
}

/// The bytes of a write-back, which may come in several parts.
void CacheFollower::take_parts(Line& line) {
  const std::uint32_t bytes = descriptor().line_bytes;
  std::uint32_t filled = 0;
  while (filled < bytes && read_ahead() && ahead_->has(kWriteBack) &&
         ahead_->address == line.traffic.line.plus32(filled)) {
    const std::uint32_t n = std::min<std::uint32_t>(ahead_->size, bytes - filled);
    std::copy_n(ahead_->data.begin(), n, line.data.begin() + filled);
    filled += n;
    ahead_.reset();
  }
}

/// Takes the next line from the bus; false at the end.
bool CacheFollower::pull() {
  while (read_ahead()) {
    if (ahead_->is_memory() && ahead_->has(kUncacheable)) learn_from(*ahead_);
    const auto traffic = captured_cache_traffic(*ahead_, descriptor());
    if (!traffic) {
      ahead_.reset();
      continue;
    }
    Line line;
    line.traffic = *traffic;
    line.transaction = ahead_->index;
    if (traffic->is_fill()) {
      ahead_.reset();
    } else {
      take_parts(line);
    }
    waiting_.push_back(line);
    return true;
  }
  return false;
}

bool CacheFollower::snoop_by_others(CacheModel& model, std::span<const Line> lines) {
  const CacheTraffic& t = lines.front().traffic;
  if (t.kind != CacheTraffic::Kind::snoop_write_back) return false;
  const CacheTraffic fill{CacheTraffic::Kind::code_fill, t.line};
  if (lines.size() > 1 && lines[1].traffic == fill) return false;
  const std::size_t before = model.traffic().size();
  model.snoop_read(t.line);
  const bool was_modified = model.traffic().size() != before;
  model.traffic().resize(before);
  return was_modified;
}

void CacheFollower::take_snoops() {
  while (!waiting_.empty() || pull()) {
    if (waiting_.front().traffic.kind != CacheTraffic::Kind::snoop_write_back) return;
    if (waiting_.size() == 1) pull();
    if (!snoop_by_others(model_, waiting_)) return;
    waiting_.erase(waiting_.begin());
  }
}

std::optional<std::size_t> CacheFollower::first_difference(std::span<const CacheTraffic> predicted,
                                                           std::span<const Line> shown) {
  std::vector<CacheTraffic> left(predicted.begin(), predicted.end());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto same = std::find(left.begin(), left.end(), shown[i].traffic);
    if (same == left.end()) return i;
    left.erase(same);
  }
  return std::nullopt;
}

std::vector<CacheFollower::Line> CacheFollower::next_lines(std::size_t most, std::uint64_t end) {
  while (waiting_.size() < most && (waiting_.empty() || waiting_.back().transaction < end) &&
         pull()) {
  }
  std::vector<Line> lines;
  for (const Line& line : waiting_) {
    if (line.transaction < end && lines.size() < most) lines.push_back(line);
  }
  return lines;
}

void CacheFollower::differ(Position now, const CacheTraffic& predicted, const Line& shown) const {
  throw ReplayStopped{now, "the cache moves another line than the processor's", shown.transaction,
                      text(shown.traffic), text(predicted)};
}

bool CacheFollower::settle(Position now) {
  std::vector<CacheTraffic>& predicted = model_.traffic();
  if (log_ != nullptr && std::exchange(logged_, now) != now) log_->push_back({});
  if (ignores_bus_) predicted.clear();
  if (predicted.empty()) return true;
  const std::vector<CacheTraffic> batch = std::exchange(predicted, {});
  take_snoops();
  while (waiting_.size() < batch.size() && pull()) {
  }
  const std::size_t shown = std::min(batch.size(), waiting_.size());
  if (limit_ && shown != 0 && waiting_[shown - 1].transaction > *limit_) {
    closed_ = true;
    return false;
  }
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(shown);
  const std::vector<Line> lines(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  if (const auto i = first_difference(batch, lines)) differ(now, batch.front(), lines[*i]);
  for (const Line& line : lines) {
    if (!line.traffic.is_fill() && written_back_) written_back_(line);
  }
  return shown == batch.size();
}

bool CacheFollower::at(std::uint64_t transaction) {
  take_snoops();
  return waiting_.empty() || waiting_.front().transaction > transaction;
}

CacheFollower::Checkpoint CacheFollower::checkpoint() {
  evidence_.hold();
  return {save_state(), evidence_.position(), ahead_, waiting_};
}

void CacheFollower::restore(const Checkpoint& c) {
  restore_state(c.accesses);
  evidence_.seek(c.evidence);
  ahead_ = c.ahead;
  waiting_ = c.waiting;
  closed_ = false;
}

}  // namespace citcat
