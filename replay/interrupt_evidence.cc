#include "replay/interrupt_evidence.h"

#include <algorithm>

namespace citcat {

bool InterruptEvidence::stores(std::uint32_t value, unsigned size) const {
  return std::any_of(order_.begin(), order_.end(), [&](std::uint32_t first) {
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto byte = bytes_.find(first + i);
      if (byte == bytes_.end() || byte->second != (value >> (8 * i) & 0xff)) return false;
    }
    return true;
  });
}

std::optional<std::uint8_t> InterruptEvidence::stored(PhysAddr address) const {
  const auto byte = bytes_.find(address.value);
  if (byte == bytes_.end()) return std::nullopt;
  return byte->second;
}

/// Collects while the evidence passes by.
class InterruptScan {
 public:
  explicit InterruptScan(const Recording& recording)
      : recording_(recording),
        shows_reads_(recording.bus.form == CacheForm::none),
        found_(recording.interrupts.size()) {}

  void take(const BusTransaction& t) {
    while (next_ < found_.size() && recording_.interrupts[next_].transaction <= t.index) begin();
    switch (t.op) {
      case BusOp::data_read:
        read(t);
        break;
      case BusOp::data_write:
        if (!t.has(kWriteBack)) write(t);
        break;
      case BusOp::io_read:
      case BusOp::io_write:
        forget_reads();
        break;
      default:
        break;
    }
  }
  std::vector<InterruptEvidence> finish() {
    while (next_ < found_.size()) begin();
    return std::move(found_);
  }

 private:
  void begin() {
    InterruptEvidence& e = found_[next_++];
    if (shows_reads_ && !too_many_) e.reads_ = reads_;
    forget_reads();
  }
  void forget_reads() {
    reads_.clear();
    too_many_ = false;
  }
  void read(const BusTransaction& t) {
    if (!shows_reads_) return;
    too_many_ |= reads_.size() + t.size > InterruptEvidence::kReadBytes;
    for (std::uint32_t i = 0; i < t.size && !too_many_; ++i) reads_.push_back(t.address.value + i);
  }
  void write(const BusTransaction& t) {
    forget_reads();
    if (next_ == 0) return;
    InterruptEvidence& e = found_[next_ - 1];
    if (e.order_.size() >= InterruptEvidence::kStoredBytes) return;
    for (std::uint32_t i = 0; i < t.size; ++i) {
      e.order_.push_back(t.address.value + i);
      e.bytes_.emplace(t.address.value + i, t.data[i]);
    }
  }

  const Recording& recording_;
  bool shows_reads_;
  std::vector<InterruptEvidence> found_;
  std::size_t next_ = 0;  ///< interrupt not reached yet
  std::vector<std::uint32_t> reads_;
  bool too_many_ = false;
};

std::vector<InterruptEvidence> scan_interrupts(const Recording& recording,
                                               EvidenceReader& evidence) {
  InterruptScan scan(recording);
  for (BusTransaction t; evidence.next(t);) scan.take(t);
  return scan.finish();
}

}  // namespace citcat
