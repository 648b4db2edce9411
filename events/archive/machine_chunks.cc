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

}  // namespace citcat
