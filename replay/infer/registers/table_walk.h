#pragma once
// Walks of page tables as the bus shows them: entries read one after the other, each from the table
// that the one before names.

#include <cstdint>
#include <optional>
#include <vector>

#include "events/bus_transaction.h"
#include "events/machine/memory_image.h"
#include "replay/infer/registers/page_map.h"

namespace citcat {

class TableWalk {
 public:
  /// `image` has the contents of entries.
  TableWalk(const PageTables& tables, const MemoryImage& image) : tables_(tables), image_(image) {}

  /// The next transaction of the bus.
  void take(const BusTransaction& t);

  /// Addresses of the entries of the walk that is going on or has just ended; empty outside walks.
  /// An entry that no other names may begin one.
  const std::vector<PhysAddr>& entries() const { return entries_; }
  /// The transaction that shows the first of them.
  std::uint64_t begin() const { return begin_; }
  /// The linear page that was walked to, where the walk is through and began at the highest level;
  /// of a large page the one in which `next` lies.
  std::optional<std::uint64_t> page(PhysAddr next) const;
  /// The processor marks an entry of the walk accessed or dirty.
  bool is_update(const BusTransaction& t) const;

 private:
  std::optional<PageEntry> entry(PhysAddr at) const;
  bool is_whole_entry(const BusTransaction& t, PhysAddr& at);

  const PageTables& tables_;
  const MemoryImage& image_;
  std::vector<PhysAddr> entries_;
  std::uint64_t begin_ = 0;
  std::optional<PhysAddr> lower_half_;  ///< of an entry of eight bytes, just read
};

}  // namespace citcat
