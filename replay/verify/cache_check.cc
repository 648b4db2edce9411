#include "replay/verify/cache_check.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>
#include <vector>

namespace citcat {

namespace {

/// Without counts: lines that are looked at for one that is predicted. An instruction moves fewer.
constexpr std::size_t kCapturedAhead = 64;

}  // namespace

std::string cache_disagreement_text(const CacheDisagreement& d) {
  char text[96];
  std::snprintf(text, sizeof text, "%s of line %08" PRIx64 " is %s",
                cache_traffic_name(d.traffic.kind), d.traffic.line.value,
                d.captured ? "on the bus and not predicted" : "predicted and not on the bus");
  return text;
}

CacheCheck::CacheCheck(const Recording& recording, std::unique_ptr<EvidenceReader> evidence,
                       const CacheDescriptor& descriptor, TakenLineReader taken)
    : CacheAccesses(recording, descriptor),
      evidence_(std::move(evidence)),
      read_taken_(std::move(taken)),
      counted_(recording.instructions.has_value()) {}

// ---------------------------------------------------------------------------------------------
// The captured side

void CacheCheck::take(const BusTransaction& t) {
  learn_from(t);
  const auto traffic = captured_cache_traffic(t, descriptor());
  if (traffic) captured_.push_back({*traffic, t.index, t.position, false});
}

/// Makes ahead_ the next transaction; false at the end.
bool CacheCheck::read_ahead() {
  if (ahead_) return true;
  if (at_end_) return false;
  BusTransaction t;
  at_end_ = !evidence_->next(t);
  if (!at_end_) ahead_ = t;
  return !at_end_;
}

void CacheCheck::pull_through(std::uint64_t instruction) {
  while (read_ahead()) {
    if (counted_ ? ahead_->has(kPositionKnown) && ahead_->position.instruction > instruction
                 : captured_.size() >= kCapturedAhead) {
      return;
    }
    hear_of_taken(ahead_->index);
    take(*ahead_);
    ahead_.reset();
  }
}

/// Others took these lines before the bus showed this transaction.
void CacheCheck::hear_of_taken(std::uint64_t transaction) {
  while (read_taken_) {
    if (!next_taken_) {
      TakenLine taken;
      if (!read_taken_(taken)) return void(read_taken_ = {});
      next_taken_ = taken;
    }
    if (next_taken_->before > transaction) return;
    taken_.push_back(next_taken_->line);
    next_taken_.reset();
  }
}

bool CacheCheck::is_filled(PhysAddr line) const {
  return std::any_of(captured_.begin(), captured_.end(), [&](const Captured& c) {
    return c.traffic.is_fill() && model_.line_of(c.traffic.line) == model_.line_of(line);
  });
}

/// A line is lost at the latest where it comes again: what the processor did with it until then
/// found it there. `all`: of those that do not come again in this instruction, too.
void CacheCheck::lose_taken(bool all) {
  std::erase_if(taken_, [&](PhysAddr line) {
    if (!all && !is_filled(line)) return false;
    const std::size_t before = model_.traffic().size();
    model_.snoop_write(line, 1);
    // A modified one has been written back before, which the bus showed.
    model_.traffic().resize(before);
    return true;
  });
}

/// A line written back because code is wanted of it is filled as code next; other snoops are made
/// by other bus masters.
bool CacheCheck::is_predicted_snoop(std::size_t i) const {
  const CacheTraffic fill{CacheTraffic::Kind::code_fill, captured_[i].traffic.line};
  return i + 1 < captured_.size() && captured_[i + 1].traffic == fill;
}

/// Lets other bus masters read the lines that the cache wrote back for them.
void CacheCheck::snoop_by_others(std::size_t from, std::size_t most) {
  const std::size_t end = std::min(captured_.size(), most);
  for (std::size_t i = from; i < end; ++i) {
    const CacheTraffic& t = captured_[i].traffic;
    if (t.kind != CacheTraffic::Kind::snoop_write_back || captured_[i].matched) continue;
    if (!is_predicted_snoop(i)) model_.snoop_read(t.line);
  }
}

// ---------------------------------------------------------------------------------------------
// One instruction against the other side

std::uint64_t CacheCheck::before_access(Position now) {
  if (instruction_ == now.instruction) return due();
  if (instruction_) settle();
  lose_taken(true);
  instruction_ = now.instruction;
  pull_through(now.instruction);
  if (!captured_.empty()) snoop_by_others(0, counted_ ? captured_.size() : 1);
  lose_taken(!counted_);
  return due();
}

/// The instruction of the next line that the bus shows; 0 where one waits already, or that is not
/// known.
std::uint64_t CacheCheck::due() const {
  const bool known = counted_ && captured_.empty() && ahead_ && ahead_->has(kPositionKnown);
  return known ? ahead_->position.instruction : 0;
}

/// The bus shows no line before the end of those instructions: what the model moves in them is not
/// there.
bool CacheCheck::hears_whole(Position first, std::uint32_t count) {
  if (!counted_) return false;
  const std::uint64_t end = first.instruction + count;
  if (model_.traffic().empty() && due() >= end) [[likely]] {
    instruction_ = first.instruction;
    return true;
  }
  return before_access(first) >= end && model_.traffic().empty();
}

void CacheCheck::moved(Position now) {
  instruction_ = now.instruction;
  settle();
}

CacheCount& CacheCheck::count_of(const CacheTraffic& t) {
  return t.is_fill() ? totals_.fills : totals_.write_backs;
}

void CacheCheck::disagree(const CacheTraffic& traffic, const Captured* shown) {
  ++(shown != nullptr ? count_of(traffic).captured : count_of(traffic).predicted);
  if (totals_.first) return;
  CacheDisagreement d;
  d.position = Position{instruction_.value_or(0), 0};
  if (shown != nullptr) {
    if (counted_) d.position = shown->position;
    d.transaction = shown->transaction;
  }
  d.captured = shown != nullptr;
  d.traffic = traffic;
  totals_.first = d;
}

bool CacheCheck::match(const CacheTraffic& predicted) {
  const auto shown = std::find_if(captured_.begin(), captured_.end(), [&](const Captured& c) {
    return !c.matched && c.traffic == predicted;
  });
  if (shown == captured_.end()) return false;
  shown->matched = true;
  CacheCount& count = count_of(predicted);
  ++count.predicted;
  ++count.captured;
  ++count.agree;
  return true;
}

/// The bus shows first what the model does not predict.
void CacheCheck::give_up_first() {
  const Captured first = captured_.front();
  captured_.pop_front();
  if (first.matched) return;
  disagree(first.traffic, &first);
  if (!first.traffic.is_fill()) return;
  const bool code = first.traffic.kind == CacheTraffic::Kind::code_fill;
  if (model_.is_cached(first.traffic.line, code)) ++totals_.refills;
  model_.learn_fill(first.traffic.line, code);
}

void CacheCheck::settle() {
  std::vector<CacheTraffic>& predicted = model_.traffic();
  if (!counted_) return settle_in_order();
  if (predicted.empty() && captured_.empty()) return;
  for (const CacheTraffic& p : predicted) {
    // Where the capture ends within the instruction, nothing is missing.
    if (!match(p) && ahead_) disagree(p, nullptr);
  }
  predicted.clear();
  while (!captured_.empty()) give_up_first();
}

void CacheCheck::settle_in_order() {
  std::vector<CacheTraffic>& predicted = model_.traffic();
  for (const CacheTraffic& p : predicted) {
    if (match(p)) {
      behind_ += captured_.front().matched ? 0 : 1;
    } else if (ahead_) {
      disagree(p, nullptr);
    }
    while (!captured_.empty() && (captured_.front().matched || behind_ > kCapturedAhead / 2)) {
      give_up_first();
      behind_ = 0;
    }
    pull_through(0);
  }
  predicted.clear();
}

void CacheCheck::finish() {
  if (!instruction_) return;
  settle();
}

}  // namespace citcat
