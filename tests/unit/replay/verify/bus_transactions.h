#pragma once
// Transactions as a capture has them, for the tests of what is compared with them.

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "events/recording.h"

namespace citcat::test {

/// At instruction `at`.
inline BusTransaction counted(BusOp op, std::uint32_t address, std::uint8_t size, std::uint64_t at,
                              unsigned flags = 0) {
  BusTransaction t;
  t.op = op;
  t.address = PhysAddr{address};
  t.size = size;
  t.position = {at, 0};
  t.flags = static_cast<std::uint16_t>(flags | kPositionKnown);
  return t;
}

/// The same with its bytes, the low one first.
inline BusTransaction counted(BusOp op, std::uint32_t address,
                              std::initializer_list<std::uint8_t> bytes, std::uint64_t at,
                              unsigned flags = 0) {
  BusTransaction t = counted(op, address, static_cast<std::uint8_t>(bytes.size()), at, flags);
  std::copy(bytes.begin(), bytes.end(), t.data.begin());
  return t;
}

/// The transaction in a capture that counts nothing.
inline BusTransaction uncounted(BusTransaction t) {
  t.flags = static_cast<std::uint16_t>(t.flags & ~unsigned{kPositionKnown});
  t.position = {};
  return t;
}

/// Evidence of these transactions.
class ListedEvidence final : public EvidenceReader {
 public:
  explicit ListedEvidence(std::vector<BusTransaction> list) : list_(std::move(list)) {}
  bool next(BusTransaction& out) override {
    if (at_ == list_.size()) return false;
    out = list_[at_++];
    return true;
  }
  /// Each is two parts.
  std::uint8_t next_line(BusTransaction& out) override { return next(out) ? 2 : 0; }

 private:
  std::vector<BusTransaction> list_;
  std::size_t at_ = 0;
};

}  // namespace citcat::test
