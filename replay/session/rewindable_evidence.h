#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "events/recording.h"

namespace citcat {

/// Evidence that can be read again from any place. What was read since hold() is kept; for what
/// lies before it, the evidence is opened anew.
class RewindableEvidence final : public EvidenceReader {
 public:
  using Open = EvidenceSource;
  /// Most transactions kept, about 100 MB; what lies further back is read again.
  static constexpr std::size_t kMaxKept = std::size_t{1} << 20;
  /// `open` opens the evidence from its start.
  explicit RewindableEvidence(Open open) : open_(std::move(open)), source_(open_()) {}

  bool next(BusTransaction& out) override {
    const std::uint64_t kept = at_ - first_kept_;
    if (kept < kept_.size()) {
      out = kept_[static_cast<std::size_t>(kept)];
    } else {
      if (!source_->next(out)) return false;
      kept_.push_back(out);
    }
    ++at_;
    next_transaction_ = out.index + 1;
    if (!holds_ || kept_.size() > kMaxKept) drop_passed();
    return true;
  }

  /// The number in the capture that follows that of the transaction read last.
  std::uint64_t next_transaction() const { return next_transaction_; }
  /// Transactions read so far.
  std::uint64_t position() const { return at_; }
  /// From now on seek() to here or later is cheap.
  void hold() {
    drop_passed();
    holds_ = true;
  }
  /// Stops keeping what is read.
  void release() { holds_ = false; }
  /// Goes back so that the transaction with this number, which has been read before, comes next.
  void seek(std::uint64_t position) {
    if (position < first_kept_) {
      source_ = open_();
      kept_.clear();
      first_kept_ = at_ = 0;
      const bool held = std::exchange(holds_, false);
      skip_to(position);
      holds_ = held;
    }
    // The source may have been reopened since, and not have been read as far again.
    at_ = std::min(position, first_kept_ + kept_.size());
    skip_to(position);
  }

 private:
  void skip_to(std::uint64_t position) {
    BusTransaction skipped;
    while (at_ < position && next(skipped)) {
    }
  }
  void drop_passed() {
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(at_ - first_kept_));
    first_kept_ = at_;
  }

  Open open_;
  std::unique_ptr<EvidenceReader> source_;
  std::deque<BusTransaction> kept_;
  std::uint64_t first_kept_ = 0;  ///< number of kept_.front()
  std::uint64_t at_ = 0;          ///< of the transaction that comes next
  std::uint64_t next_transaction_ = 0;
  bool holds_ = false;
};

}  // namespace citcat
