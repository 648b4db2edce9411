#pragma once
// The data kept about code that runs in blocks. Everything else about a policy follows from that.

#include <cstddef>
#include <cstdint>

namespace citcat::fast {

/// The one list of policies. Each makes a table of the handlers that end a block (FlowHandlers).
enum class Keep : std::uint8_t {
  nothing,
  stores,        ///< what is stored; in a comparison, whether to the bytes of State::trap
  counts,        ///< how often each block ran
  trail,         ///< that, and the last blocks with their effective addresses
  stores_trail,  ///< that and what is stored; not in a comparison
  kt_records,    ///< KT records of all blocks, one after the other (RecordRoom)
  addresses,     ///< effective addresses; blocks run in batches
  references,    ///< that, and each access with its value
};
inline constexpr std::size_t kKeeps = 8;

/// What handlers note about their accesses. Each value has its own table of handlers that access
/// memory.
enum class AccessNotes : std::uint8_t {
  none,
  stores,     ///< stores: kept with `addresses`, or in a comparison looked at for State::trap
  addresses,  ///< effective addresses go into the area
  values,     ///< and what is read and stored into State::log
};
constexpr AccessNotes notes_for(Keep keep) {
  if (keep == Keep::references) return AccessNotes::values;
  if (keep == Keep::stores || keep == Keep::stores_trail) return AccessNotes::stores;
  return keep == Keep::nothing || keep == Keep::counts ? AccessNotes::none : AccessNotes::addresses;
}

/// How a block is run. A block is valid for one policy.
struct Policy {
  Keep keep = Keep::nothing;
  /// A comparison: memory is looked at as defined or not, byte by byte, and what became of the
  /// flags is kept.
  bool exact = false;
  bool operator==(const Policy&) const = default;

  bool logs() const { return keep == Keep::references; }
  bool counts() const { return keep == Keep::counts || trails(); }
  bool trails() const { return keep == Keep::trail || keep == Keep::stores_trail; }
  bool batches() const { return keep == Keep::addresses || logs(); }
};

}  // namespace citcat::fast
