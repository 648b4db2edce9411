#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace citcat {

/// Maps instruction addresses to template numbers, which are never 0. Open addressing, because the
/// lookup at every unexpected branch should touch one line of the processor's cache.
class EipTable {
 public:
  /// The number kept for `eip`, or 0.
  std::uint32_t find(std::uint32_t eip) const { return slots_[place(eip)].number; }
  /// Keeps `number`, which is not 0, and returns the one kept before, or 0.
  std::uint32_t exchange(std::uint32_t eip, std::uint32_t number) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place(eip)];
    if (slot.number == 0) ++used_;
    slot.eip = eip;
    return std::exchange(slot.number, number);
  }

 private:
  struct Slot {
    std::uint32_t eip = 0;
    std::uint32_t number = 0;  ///< 0: the slot is free
  };
  std::size_t place(std::uint32_t eip) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (eip * std::uint64_t{0x9e3779b97f4a7c15U} >> 32) & mask;
    while (slots_[at].number != 0 && slots_[at].eip != eip) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.number != 0) slots_[place(slot.eip)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << 12);  // a power of two
  std::size_t used_ = 0;
};

}  // namespace citcat
