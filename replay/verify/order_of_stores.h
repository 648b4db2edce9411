#pragma once
// The order of an instruction's stores, where a monitor counts instructions.
//
// In which order a machine makes several stores of one instruction, and moves the parts of one
// store that its bus does not take at once, no manual says for all of them, and emulators differ.
// But each processor does it in the same way every time: the order that an instruction showed first
// must come again whenever it stores as much. Between instructions, deliveries and iterations of a
// REP there is no freedom: stores become visible in program order (SDM vol. 3, 8.2.2).
//
// The accessed and dirty bits of page tables are written at a time of the processor's choice, but
// before the access that they are set for (80386 Programmer's Reference Manual, 5.2.4.3): not after
// the last store that the replay makes after them.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "replay/machine/observer.h"
#include "replay/verify/mismatch.h"

namespace citcat {

/// A copy is a checkpoint.
class OrderOfStores {
 public:
  /// The replay stores so many bytes at `a`, the next store of the instruction or delivery in
  /// progress.
  void begin(AccessKind kind, PhysAddr a, std::uint32_t size);
  /// A byte of that store is of the captured write `t`. A mismatch where `t` is on the bus before a
  /// store of an instruction that the replay has completed.
  std::optional<Mismatch> made(const BusTransaction& t);
  /// Some stores have been made since the last complete().
  bool is_open() const { return !stores_.empty(); }
  /// All stores of what is in progress have been made. Those of the same `identity`, of the same
  /// sorts and sizes, have the same order each time.
  std::optional<Mismatch> complete(std::uint64_t identity, Position now);
  /// The orders so far: of the same key there is one.
  std::map<std::uint64_t, std::uint64_t> orders() const;
  /// Elsewhere a store of that size has been seen on the bus in parts, the lowest first. A mismatch
  /// is left to complete().
  void note_upward(PhysAddr a, std::uint32_t size) {
    seen_.try_emplace(parts_key(a, size), Seen{kUpward, {}});
  }

 private:
  struct Store {
    AccessKind kind = AccessKind::data;
    PhysAddr address;
    std::uint32_t size = 0;
  };
  struct Part {
    BusTransaction t;
    std::size_t store = 0;  ///< of stores_
  };
  /// An order, and the instruction that first had it.
  struct Seen {
    std::uint64_t order = 0;
    Position at;
  };
  static constexpr std::uint64_t kUpward = 0;

  static std::uint64_t parts_key(PhysAddr a, std::uint32_t size) {
    constexpr std::uint32_t kWidestBus = 8;  // bytes, of a Pentium
    return std::uint64_t{size} << 3 | a.offset_in(kWidestBus);
  }
  std::optional<Mismatch> check_walks() const;
  std::optional<Mismatch> check_parts(Position now);
  std::optional<Mismatch> check_stores(std::uint64_t identity, Position now);
  std::optional<Mismatch> hold_to(std::uint64_t key, std::uint64_t order, const Part& first,
                                  Position now);

  std::vector<Store> stores_;            ///< in progress, as the replay makes them
  std::vector<Part> parts_;              ///< captured, in the order in which the replay makes them
  std::optional<std::uint64_t> passed_;  ///< the last captured write of what is complete
  std::map<std::uint64_t, Seen> seen_;
};

}  // namespace citcat
