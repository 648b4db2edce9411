#pragma once
// A driver's state dump as bus writes, and captures held in memory.

#include <cstdint>
#include <vector>

#include "capture/bus/source.h"
#include "driver-kmod/uapi/citcat_dump.h"
#include "events/bus_transaction.h"

namespace citcat::test {

/// The words of a dump: word i stands at offset 4 i. Registers hold recognisable values.
inline std::vector<std::uint32_t> dump_words() {
  std::vector<std::uint32_t> words(CITCAT_STATE_CPUID_COUNT / 4);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = 0x10000u + static_cast<std::uint32_t>(4 * i);
  }
  words[0] = CITCAT_STATE_MAGIC;
  words[1] = CITCAT_STATE_VERSION;
  words[CITCAT_STATE_ACTIVITY / 4] = 0;
  const auto add = [&](std::initializer_list<std::uint32_t> more) {
    words.insert(words.end(), more);
  };
  add({2, 0, 1, 0x756e6547, 0x6c65746e, 0x49656e69, 1, 0x0480, 0, 0, 3});  // CPUID: a 486
  add({3, 0x176, 0x1234, 0, 0x174, 0x60, 0, 0x10, 5, 7});                  // MSRs, out of order
  add({CITCAT_STATE_END});
  return words;
}

inline BusTransaction memory_write(std::uint32_t address, std::uint32_t value, unsigned flags = 0) {
  BusTransaction t;
  t.op = BusOp::data_write;
  t.address = PhysAddr{address};
  t.size = 4;
  t.flags = static_cast<std::uint16_t>(flags);
  for (unsigned i = 0; i < 4; ++i) t.data[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return t;
}

inline std::vector<BusTransaction> dump_writes(std::uint32_t base, unsigned flags = 0) {
  std::vector<BusTransaction> writes;
  std::uint32_t address = base;
  for (const std::uint32_t word : dump_words()) {
    writes.push_back(memory_write(address, word, flags));
    address += 4;
  }
  return writes;
}

/// Numbers the transactions as a capture would.
inline void number(std::vector<BusTransaction>& transactions) {
  for (std::size_t i = 0; i < transactions.size(); ++i) transactions[i].index = i;
}

class VectorCapture final : public CaptureReader {
 public:
  explicit VectorCapture(std::vector<BusTransaction> transactions)
      : transactions_(std::move(transactions)) {
    info_.format = "test";
    info_.has_positions = true;
    number(transactions_);
  }
  const CaptureInfo& info() const override { return info_; }
  bool next(BusTransaction& out) override {
    if (next_ == transactions_.size()) return false;
    out = transactions_[next_++];
    return true;
  }

 private:
  CaptureInfo info_;
  std::vector<BusTransaction> transactions_;
  std::size_t next_ = 0;
};

}  // namespace citcat::test
