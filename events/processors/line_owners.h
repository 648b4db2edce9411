#pragma once
// Who may hold which line in a cache, and how, as far as the bus shows: MESI (Intel SDM vol. 3,
// 11.4). Clean lines leave a cache silently, so a copy means only that a processor may have the
// line.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/bus_transaction.h"
#include "events/processors/bus_note.h"
#include "events/processors/bus_parts.h"

namespace citcat {

/// Whether a flush is WBINVD, and not INVD, which throws away what is modified.
inline bool writes_back(const BusTransaction& flush) {
  constexpr std::uint8_t kWbinvd = 2;  // BusOp::flush
  return flush.data[0] == kWbinvd;
}

class LineOwners {
 public:
  LineOwners(std::size_t processors, std::uint32_t line_bytes)
      : processors_(processors), line_bytes_(line_bytes) {}

  /// What is wrong with a transaction to memory, or "": the first part of a line speaks for it.
  std::string take(std::uint8_t processor, const BusTransaction& t);
  /// The same of an invalidation.
  std::string invalidate(std::uint8_t processor, PhysAddr address);
  /// WBINVD empties the processor's cache (Intel SDM vol. 2, WBINVD). Returns the lines that it has
  /// modified and not written back before, ascending.
  std::vector<PhysAddr> write_back_all(std::uint8_t processor);
  /// INVD empties it too, and what it has modified is lost.
  void throw_away(std::uint8_t processor);
  /// The processor that may have changed a line without a transaction.
  std::optional<std::uint8_t> owner(PhysAddr address) const;

 private:
  /// What a processor's cache may hold of a line. A line that is its own alone may have become
  /// modified without a transaction.
  enum class Copy : std::uint8_t { none, shared, own, modified };
  using Line = std::span<Copy>;     ///< by processor
  using Lines = std::vector<Copy>;  ///< of a part, one after the other

  Line line(PhysAddr address);
  Line line_of(Lines& lines, PhysAddr address) const {
    return std::span(lines).subspan(address.offset_in(kBusPart) / line_bytes_ * processors_,
                                    processors_);
  }
  void drop_others(Line line, std::uint8_t processor);
  bool others_have(Line line, std::uint8_t processor) const;
  std::string fill(Line line, std::uint8_t processor, const BusTransaction& t);
  std::string write_back(Line line, std::uint8_t processor, const BusTransaction& t);

  std::size_t processors_;
  std::uint32_t line_bytes_;
  BusParts<Lines> parts_;
};

}  // namespace citcat
