#pragma once
// Data reads in the order of the bus, for pins that report every instruction without counting.
//
// An 8086, which has no cache, reads each operand on the bus, and its status pins tell such a read
// from a fetch (Intel 8086 data sheet, table "Status"). An extra, missing or different read shows
// that the run differs, even before its value has reached a write. (fetch_order.h is about
// fetches.)

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "events/bus_transaction.h"
#include "formats/memory/short_queue.h"
#include "replay/verify/mismatch.h"

namespace citcat {

class OrderedReads {
 public:
  /// The bus shows this read of data.
  void expect(const BusTransaction& t) { waiting_.push_back(t); }
  bool empty() const { return waiting_.empty(); }

  /// What the replay reads.
  struct Access {
    PhysAddr address;
    std::uint32_t size = 0;
    std::uint32_t taken = 0;  ///< bytes that the bus has shown, the lowest first

    bool complete() const { return taken == size; }
  };
  /// The transaction that is due, which there must be, is compared with the part of `access` that
  /// comes next. It may turn out to be none of this access; then nothing of it is taken.
  std::optional<Mismatch> observe(Access& access) {
    const BusTransaction& t = waiting_.front();
    const bool equal = t.address == access.address.plus32(access.taken) && t.size != 0 &&
                       t.size <= access.size - access.taken;
    if (equal) {
      access.taken += t.size;
      ++compared_;
    } else if (!is_of_coprocessor(t.address)) {
      return Mismatch{"the processor read other data than the replay", t, text_of(access)};
    }
    waiting_.pop_front();
    return std::nullopt;
  }

  /// An instruction of the coprocessor reads or stores there. The processor reads a word of the
  /// operand, also of one that is stored, and the coprocessor, if there is one, the rest (Intel
  /// 8087 data sheet, "Processor interface"): no read there is compared.
  void leave_to_coprocessor(PhysAddr operand) {
    if (!is_of_coprocessor(operand)) coprocessor_operand_ = operand;
  }

  /// At the end of the replay, which has made all reads that it makes.
  std::optional<Mismatch> left_before(Position end) {
    while (!waiting_.empty()) {
      const BusTransaction& t = waiting_.front();
      if (is_left_at(t, end) && !is_of_coprocessor(t.address)) {
        return Mismatch{"the processor read data and the replay did not", t,
                        "the end of the replay"};
      }
      waiting_.pop_front();
    }
    return std::nullopt;
  }

  std::uint64_t compared() const { return compared_; }

 private:
  /// The longest operand of an 8087: what FSAVE stores (Intel SDM vol. 2, FSAVE, in 16-bit modes).
  static constexpr std::uint32_t kLongestOperand = 94;

  bool is_of_coprocessor(PhysAddr a) const {
    return coprocessor_operand_ && a.is_within32(*coprocessor_operand_, kLongestOperand);
  }
  static std::string text_of(const Access& access) {
    char text[64];
    std::snprintf(text, sizeof text, "read of %u bytes at %08" PRIx64, access.size,
                  access.address.value);
    return text;
  }

  ShortQueue<BusTransaction> waiting_;
  std::optional<PhysAddr> coprocessor_operand_;  ///< of its last instruction
  std::uint64_t compared_ = 0;
};

}  // namespace citcat
