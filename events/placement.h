#pragma once
// The positions that a search found for interrupts without a count
// (replay/infer/places/event_placer.h), and how certain they are.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "events/recording.h"

namespace citcat {

class ByteReader;

/// How certain the position of an interrupt is. Archives contain these numbers.
enum class Placement : std::uint8_t {
  none = 0,        ///< not placed
  unique = 1,      ///< everything on the bus fits one boundary only
  equivalent = 2,  ///< several boundaries fit, and the run is the same after each
  ambiguous = 3,   ///< several boundaries fit, and the capture does not distinguish them
  absent = 4,      ///< a marker that the program reached by itself, without an interrupt
};
/// "none", "unique", "equivalent", "ambiguous", "absent".
const char* placement_name(Placement placement);

/// One interrupt of the schedule.
struct PlacedEvent {
  std::size_t interrupt = 0;  ///< number in Recording::interrupts
  Placement placement = Placement::none;
  Position position;             ///< the one taken: of several, the first
  std::uint64_t candidates = 0;  ///< boundaries that fit everything; 1 where placed uniquely
  bool more = false;             ///< a loop without end: there are more than were counted
  /// Some of the other positions that fit, at most kListedPositions.
  std::vector<Position> others;
  bool operator==(const PlacedEvent&) const = default;
};
inline constexpr std::size_t kListedPositions = 16;

/// The payload of a PLAC chunk (docs/formats/archive.md) and back. Throws FormatError; allocates no
/// more than the payload justifies.
std::vector<std::uint8_t> encode_placements(std::span<const PlacedEvent> events);
std::vector<PlacedEvent> decode_placements(ByteReader& in);

/// Gives the interrupts of `schedule` the positions found; those with Placement::none stay without
/// one. Absent ones become Interrupt::Kind::none. Returns false, and changes nothing, when the
/// events are not of this schedule.
bool apply_placements(std::span<const PlacedEvent> events, Schedule& schedule);

}  // namespace citcat
