#include "replay/infer/places/interrupt_evidence.h"

#include <algorithm>
#include <utility>

namespace citcat {

bool InterruptEvidence::stores(std::uint64_t value, unsigned size) const {
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
  /// `transactions`: where they are, ascending.
  InterruptScan(std::vector<std::uint64_t> transactions, bool shows_reads)
      : transactions_(std::move(transactions)),
        shows_reads_(shows_reads),
        found_(transactions_.size()) {}

  void take(const BusTransaction& t) {
    while (next_ < found_.size() && transactions_[next_] <= t.index) begin();
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
  /// Nothing more is to be found out.
  bool is_full() const { return next_ == found_.size() && found_.back().is_full(); }
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
    for (std::uint32_t i = 0; i < t.size && !too_many_; ++i)
      reads_.push_back(t.address.plus32(i).value);
  }
  void write(const BusTransaction& t) {
    forget_reads();
    if (next_ == 0) return;
    InterruptEvidence& e = found_[next_ - 1];
    if (e.is_full()) return;
    for (std::uint32_t i = 0; i < t.size; ++i) {
      e.order_.push_back(t.address.plus32(i).value);
      e.bytes_.emplace(t.address.plus32(i).value, t.data[i]);
    }
  }

  std::vector<std::uint64_t> transactions_;
  bool shows_reads_;
  std::vector<InterruptEvidence> found_;
  std::size_t next_ = 0;  ///< interrupt not reached yet
  std::vector<std::uint64_t> reads_;
  bool too_many_ = false;
};

std::vector<InterruptEvidence> scan_interrupts(const Schedule& schedule, bool shows_reads,
                                               EvidenceReader& evidence) {
  std::vector<std::uint64_t> transactions;
  for (const Interrupt& i : schedule.interrupts) {
    if (i.kind != Interrupt::Kind::on_chip) transactions.push_back(i.transaction);
  }
  InterruptScan scan(std::move(transactions), shows_reads);
  for (BusTransaction t; evidence.next(t);) scan.take(t);
  std::vector<InterruptEvidence> acknowledged = scan.finish(), all;
  auto next = acknowledged.begin();
  for (const Interrupt& i : schedule.interrupts) {
    all.push_back(i.kind != Interrupt::Kind::on_chip ? std::move(*next++) : InterruptEvidence{});
  }
  return all;
}

InterruptEvidence scan_interrupt(std::uint64_t transaction, bool shows_reads,
                                 EvidenceReader& evidence) {
  InterruptScan scan({transaction}, shows_reads);
  for (BusTransaction t; !scan.is_full() && evidence.next(t);) scan.take(t);
  return std::move(scan.finish().front());
}

}  // namespace citcat
