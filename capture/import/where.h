#pragma once
// Places in a capture, as the command line names them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "events/bus_transaction.h"

namespace citcat {

/// A place in a capture, as `--start` and `--stop` name it: `kind:number`.
struct Where {
  enum class Kind : std::uint8_t {
    interrupt,    ///< the number-th interrupt acknowledge of the capture, from 0
    transaction,  ///< the transaction with this index
    sample,       ///< the first transaction that begins at this sample or later
    instruction,  ///< the first transaction counted to this instruction or a later one
    clock,        ///< the first transaction at this bus clock or later
  };
  Kind kind = Kind::transaction;
  std::uint64_t number = 0;
};
/// Throws UsageError for a text that does not name a place.
Where parse_where(std::string_view text);
std::string where_text(const Where& where);

/// Says when a stream of transactions has come to a place.
class WhereFinder {
 public:
  /// Nothing: a place that is never reached.
  explicit WhereFinder(const std::optional<Where>& where) : where_(where) {}

  /// Takes the next transaction of the capture; true when it is at the place or after it.
  bool reached(const BusTransaction& t) { return where_ && reached_place(t); }

 private:
  bool reached_place(const BusTransaction& t);

  std::optional<Where> where_;
  std::uint64_t interrupts_ = 0;
};

}  // namespace citcat
