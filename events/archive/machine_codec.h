#pragma once
// The chunks MACH, BUSN and EDGE, which describe all processors of an archive together
// (docs/formats/archive.md).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "events/archive/chunk.h"
#include "events/processors/bus_note.h"
#include "formats/io/byte_reader.h"

namespace citcat {

inline constexpr ChunkKind kMachineChunk = chunk_kind("MACH");
inline constexpr ChunkKind kBusNoteChunk = chunk_kind("BUSN");
inline constexpr ChunkKind kEdgeChunk = chunk_kind("EDGE");

/// The recordings of the archive are the processors of one machine, in the order of their numbers.
/// Clocks say in which order their transactions went over the bus.
struct MachineInfo {
  std::size_t processors = 0;
  bool shows_sharing = false;  ///< HIT#, LOCK# and invalidations are in the evidence and the notes
  /// External writes that follow from what other processors wrote are left out of the recordings.
  bool leaves_out = false;
};

std::vector<std::uint8_t> encode_machine(const MachineInfo& machine);
MachineInfo decode_machine(ByteReader& in);

/// At most kEventChunkRows.
std::vector<std::uint8_t> encode_bus_notes(std::span<const BusNote> notes);
void decode_bus_notes(ByteReader& in, std::vector<BusNote>& notes);

/// External writes that another processor made, by the transactions of `processor` that show them,
/// ascending; at most kEventChunkRows.
struct Edges {
  std::size_t processor = 0;
  std::vector<std::uint64_t> transactions;
};
std::vector<std::uint8_t> encode_edges(const Edges& edges);
Edges decode_edges(ByteReader& in);

}  // namespace citcat
