#pragma once
// The window of an external write begins at the last access to its bytes. Keeping a full BusAnchor
// for every byte of memory would cost more than the memory; keeping one for every transaction would
// grow with the capture. So time is cut into epochs of 256 transactions, bytes remember the epoch
// of their last access, and a log remembers the counts at the beginning of epochs. When the log is
// full, every second entry is dropped: windows then begin somewhat earlier than necessary, never
// later.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/recording.h"

namespace citcat {

class AccessClock {
 public:
  static constexpr std::uint64_t kEpochTransactions = 256;

  /// To be called before each transaction with the counts of what came before it.
  void tick(const BusAnchor& before) {
    begin(before);
    pass(1);
  }
  /// The same for several: begin() with the counts before the first, which returns how many more
  /// belong to its epoch, and pass() for as many or fewer of them.
  std::uint64_t begin(const BusAnchor& before) {
    const std::uint64_t passed = transactions_ % kEpochTransactions;
    if (passed == 0) begin_epoch(before);
    return kEpochTransactions - passed;
  }
  void pass(std::uint64_t transactions) { transactions_ += transactions; }
  /// Epoch of the transaction that was announced last.
  std::uint32_t epoch() const { return epoch_; }
  /// Counts at or before the beginning of an epoch.
  BusAnchor begin_of(std::uint32_t epoch) const { return log_[epoch / stride_]; }

 private:
  static constexpr std::size_t kMaxLog = 65536;

  void begin_epoch(const BusAnchor& before) {
    epoch_ = static_cast<std::uint32_t>(transactions_ / kEpochTransactions);
    if (epoch_ % stride_ != 0) return;
    if (log_.size() == kMaxLog) {
      for (std::size_t i = 1; i < kMaxLog / 2; ++i) log_[i] = log_[2 * i];
      log_.resize(kMaxLog / 2);
      stride_ *= 2;
      if (epoch_ % stride_ != 0) return;
    }
    log_.push_back(before);
  }

  std::uint64_t transactions_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint32_t stride_ = 1;  ///< epochs between two entries of log_
  std::vector<BusAnchor> log_{};
};

}  // namespace citcat
