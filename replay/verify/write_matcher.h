#pragma once
// Captured writes that wait for the replay to make them: byte by byte, because processors split and
// join what instructions store.
//
// The order must be that of the bus. Only bytes of one instruction may come in another order, if
// the processor's own order is not known, or if the capture was not taken at pins but by a monitor.

#include <cstdint>
#include <optional>

#include "formats/memory/short_queue.h"
#include "replay/verify/mismatch.h"
#include "replay/verify/transaction_bytes.h"

namespace citcat {

class WriteMatcher {
 public:
  struct Pending {
    BusTransaction t;
    std::uint32_t unmatched = 0;  ///< bit i: byte i has not been written by the replay yet
    bool adopted = false;         ///< a byte of it was taken over from the bus

    bool is_whole() const { return unmatched == all_bytes(t.size); }
  };
  /// How far a captured write may be from its place. Bytes of one instruction stay well within it:
  /// the largest, FXSAVE, is 128 bus words; an interrupt out of virtual-8086 mode is 10.
  static constexpr std::size_t kWindow = 160;

  void expect(const BusTransaction& t) {
    Pending& w = writes_.emplace_back();
    w.t = t;
    w.unmatched = all_bytes(t.size);
  }
  bool empty() const { return writes_.empty(); }
  std::size_t waiting() const { return writes_.size(); }
  const Pending& operator[](std::size_t i) const { return writes_[i]; }
  /// Whether part of a later write has been made while the first still waits.
  bool out_of_order() const { return out_of_order_; }
  /// A write that waits, not of an instruction after the one at `now`, goes to this byte.
  bool covers(PhysAddr a, Position now) const;
  /// Whether the replay has made all writes that waited.
  bool all_made() const;
  /// The same of those that a bus shows, and not what its monitor knows of a chip's own registers.
  bool all_shown_made() const;

  /// The first write that waits for a byte at `a` from the instruction at `now`; null where there
  /// is none. `more` lets further writes be expected while fewer than kWindow are, and returns
  /// false where none can come.
  template <class More>
  Pending* find(PhysAddr a, Position now, More more) {
    for (std::size_t i = 0; i < kWindow; ++i) {
      while (i >= writes_.size()) {
        if (!more()) return nullptr;
      }
      Pending& w = writes_[i];
      if (w.t.has(kPositionKnown) && w.t.position.instruction > now.instruction) return nullptr;
      const std::uint32_t offset = a.minus32(w.t.address);
      if (offset < w.t.size && (w.unmatched >> offset & 1) != 0) {
        if (i != 0) out_of_order_ = true;
        return &w;
      }
    }
    return nullptr;
  }
  /// find() found none for this byte.
  Mismatch unexpected(PhysAddr a, std::uint8_t value) const;
  /// Where the order of the processor's stores is known: the write that the byte belongs to must be
  /// the first of those that are left.
  std::optional<Mismatch> observe_order(const Pending& made, PhysAddr a, std::uint8_t value) const;
  /// The replay writes the byte, which memory holds now: true when all of the write has been made.
  static bool observe(Pending& pending, PhysAddr a) {
    pending.unmatched &= ~(1u << a.minus32(pending.t.address));
    return pending.unmatched == 0;
  }
  /// The instruction at `completed` has made all its stores: a write that it or one before left
  /// out.
  std::optional<Mismatch> overdue(Position completed) const;
  /// Forgets what has been made, as far as nothing before it waits.
  void drop_made() {
    while (!writes_.empty() && writes_.front().unmatched == 0) writes_.pop_front();
    if (out_of_order_) out_of_order_ = any_begun();
  }
  /// The first `count` agree.
  void drop_front(std::size_t count) { writes_.drop_front(count); }

  /// At the end of the replay.
  std::optional<Mismatch> left_before(Position end) const;
  /// The first that has not been made; null where all have.
  const BusTransaction* first_missing() const;

 private:
  bool any_begun() const;

  ShortQueue<Pending> writes_;
  bool out_of_order_ = false;
};

}  // namespace citcat
