#include "events/archive/machine_chunks.h"

namespace citcat {

MachineChunks machine_chunks(const ContainerReader& container) {
  MachineChunks machine;
  for (const ChunkInfo& chunk : container.chunks()) {
    if (chunk.kind != kMachineChunk && chunk.kind != kBusNoteChunk) continue;
    const std::vector<std::uint8_t> payload = container.read(chunk);
    ByteReader in(payload, container.path(), chunk.offset);
    if (chunk.kind == kBusNoteChunk) {
      decode_bus_notes(in, machine.notes);
    } else {
      machine.info = decode_machine(in);
    }
  }
  return machine;
}

std::vector<std::uint64_t> edges_of(const ContainerReader& container, std::size_t processor) {
  std::vector<std::uint64_t> all;
  for (const ChunkInfo& chunk : container.chunks()) {
    if (chunk.kind != kEdgeChunk) continue;
    const std::vector<std::uint8_t> payload = container.read(chunk);
    ByteReader in(payload, container.path(), chunk.offset);
    const Edges edges = decode_edges(in);
    if (edges.processor == processor)
      all.insert(all.end(), edges.transactions.begin(), edges.transactions.end());
  }
  return all;
}

}  // namespace citcat
