#include "events/archive/machine_chunks.h"

#include "events/archive/recording_codec.h"
#include "formats/io/error.h"
#include "formats/io/memory_limit.h"

namespace citcat {
namespace {

/// Throws FormatError for a note of a processor that the machine lacks, and for one that
/// comes later than those before it.
void require_sound(const MachineChunks& machine, const std::string& path) {
  const std::size_t processors = machine.info.processors;  // 0: a repair has lost their number
  std::uint64_t clock = 0;
  for (const BusNote& note : machine.notes) {
    const bool strange = processors != 0 && note.processor >= processors;
    if (strange && note.kind == BusNote::Kind::invalidate) {
      throw FormatError(path, 0,
                        "bus notes: expected invalidations by " + std::to_string(processors) +
                            " processors, found one by number " + std::to_string(note.processor));
    }
    if (note.clock < clock) {
      throw FormatError(path, 0,
                        "bus notes: expected clocks in their order, found " +
                            std::to_string(note.clock) + " after " + std::to_string(clock));
    }
    clock = note.clock;
  }
}

}  // namespace

MachineChunks machine_chunks(const ContainerReader& container) {
  MachineChunks machine;
  for (const ChunkInfo& chunk : container.chunks()) {
    if (chunk.kind != kMachineChunk && chunk.kind != kBusNoteChunk) continue;
    const std::vector<std::uint8_t> payload = container.read(chunk);
    ByteReader in(payload, container.path(), chunk.offset);
    if (chunk.kind == kBusNoteChunk) {
      require_memory((machine.notes.size() + kEventChunkRows) * sizeof(BusNote), container.path(),
                     chunk.offset, "the notes of the bus");
      decode_bus_notes(in, machine.notes);
      continue;
    }
    if (machine.info.processors != 0)
      in.fail("expected one MACH chunk for an archive, found another");
    machine.info = decode_machine(in);
  }
  require_sound(machine, container.path());
  return machine;
}

std::vector<std::uint64_t> edges_of(const ContainerReader& container, std::size_t processor) {
  std::vector<std::uint64_t> all;
  for (const ChunkInfo& chunk : container.chunks()) {
    if (chunk.kind != kEdgeChunk) continue;
    const std::vector<std::uint8_t> payload = container.read(chunk);
    ByteReader in(payload, container.path(), chunk.offset);
    require_memory((all.size() + kEventChunkRows) * sizeof all.front(), container.path(),
                   chunk.offset, "the edges of a processor");
    const Edges edges = decode_edges(in);
    if (edges.processor == processor)
      all.insert(all.end(), edges.transactions.begin(), edges.transactions.end());
  }
  return all;
}

}  // namespace citcat
