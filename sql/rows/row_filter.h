#pragma once
// The conditions of a query that select rows before they are collected.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "sql/rows/run_rows.h"

namespace citcat::sql {

/// Numbers as SQLite has them: an address of the upper half of 64 bits is negative.
struct IntegerRange {
  std::int64_t first = std::numeric_limits<std::int64_t>::min();
  std::int64_t last = std::numeric_limits<std::int64_t>::max();

  bool has(std::int64_t n) const { return first <= n && n <= last; }
  bool has(std::uint64_t n) const { return has(static_cast<std::int64_t>(n)); }
  bool empty() const { return first > last; }
  bool is_all() const { return *this == IntegerRange{}; }
  bool operator==(const IntegerRange&) const = default;
};

struct RowFilter {
  IntegerRange positions, levels, addresses, physical;
  std::optional<std::string> process;

  bool operator==(const RowFilter&) const = default;
  bool has(const ContextTable::Entry& context) const {
    const bool has_level =
        context.knows_level() ? levels.has(std::int64_t{context.level}) : levels.is_all();
    return has_level && (!process || *process == *context.process);
  }
  /// What has no linear address has none that a query could ask for.
  bool has(LinearAddr linear, PhysAddr at, bool has_linear = true) const {
    if (has_linear ? !addresses.has(linear.value) : !addresses.is_all()) return false;
    return physical.has(at.value);
  }
  bool narrows_addresses() const { return !addresses.is_all() || !physical.is_all(); }
};

}  // namespace citcat::sql
