#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "events/recording.h"

namespace citcat {

/// Evidence that can be read again from any place. Everything read since hold() is kept; for
/// earlier transactions the evidence is opened again.
class RewindableEvidence final : public EvidenceReader {
 public:
  using Open = EvidenceSource;
  /// Most transactions kept, 84 MB; what lies further back is read again.
  static constexpr std::size_t kMaxKept = std::size_t{1} << 20;
  /// `open` opens the evidence from its start.
  explicit RewindableEvidence(Open open) : open_(std::move(open)), source_(open_()) {}

  bool next(BusTransaction& out) override {
    const std::uint64_t kept = at_ - first_kept_;
    if (kept < kept_count_) {
      out = kept_[kept / kChunk][kept % kChunk];
    } else {
      if (!source_->next(out)) return false;
      if (!holds_ || kept_count_ == kMaxKept) forget_kept();
      if (holds_) {
        keep(out);
      } else {
        ++first_kept_;
      }
    }
    ++at_;
    next_transaction_ = out.index + 1;
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
      at_ = 0;
      forget_kept();
      const bool held = std::exchange(holds_, false);
      skip_to(position);
      holds_ = held;
    }
    // The source may have been reopened since, and not have been read as far again.
    at_ = std::min(position, first_kept_ + kept_count_);
    skip_to(position);
  }

 private:
  void skip_to(std::uint64_t position) {
    BusTransaction skipped;
    while (at_ < position && next(skipped)) {
    }
  }
  void keep(const BusTransaction& t) {
    if (kept_count_ % kChunk == 0) kept_.emplace_back().reserve(kChunk);
    kept_.back().push_back(t);
    ++kept_count_;
  }
  /// All that is kept has been read again.
  void forget_kept() {
    kept_.clear();
    kept_count_ = 0;
    first_kept_ = at_;
  }
  void drop_passed() {
    const std::uint64_t passed = at_ - first_kept_;
    if (passed == kept_count_) return forget_kept();
    const std::uint64_t chunks = passed / kChunk;
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(chunks));
    kept_count_ -= chunks * kChunk;
    first_kept_ += chunks * kChunk;
  }

  /// So many are kept together: none is moved when there are more, and each is found at once.
  static constexpr std::size_t kChunk = 1024;

  Open open_;
  std::unique_ptr<EvidenceReader> source_;
  std::vector<std::vector<BusTransaction>> kept_;  ///< kChunk each, except for the last
  std::uint64_t kept_count_ = 0;
  std::uint64_t first_kept_ = 0;  ///< number of the first that is kept
  std::uint64_t at_ = 0;          ///< of the transaction that comes next
  std::uint64_t next_transaction_ = 0;
  bool holds_ = false;
};

}  // namespace citcat
