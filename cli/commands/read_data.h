#pragma once

#include <cstddef>
#include <vector>

#include "events/machine/memory_image.h"
#include "events/recording.h"

namespace citcat {

/// The values that the reads of a recording returned. The evidence does not keep them, because they
/// follow from the rest: the memory first read, what was written since, and what other masters
/// wrote (docs/derivation.md).
class ReadData {
 public:
  /// `recording` must outlive the object.
  explicit ReadData(const Recording& recording);

  /// Gives a read or fetch its data; transactions come in bus order and none is left out. False
  /// when a byte of it is not known, as where hints have changed the evidence.
  bool complete(BusTransaction& t);

 private:
  void take_external_writes(std::uint64_t transaction);

  MemoryImage memory_;
  PackedCursor<ExternalWrites> external_;
  /// The numbers of them, by the transaction that showed them; empty where they are so already.
  std::vector<std::size_t> order_;
  std::size_t count_, next_ = 0;
};

}  // namespace citcat
