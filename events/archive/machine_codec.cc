#include "events/archive/machine_codec.h"

#include <algorithm>

#include "events/archive/recording_codec.h"
#include "formats/io/byte_writer.h"
#include "formats/io/column.h"

namespace citcat {
namespace {

constexpr std::uint64_t kLastNoteKind = static_cast<std::uint64_t>(BusNote::Kind::device_write);

/// Writes one number of every note as a column.
template <typename Field>
void write_notes(ByteWriter& out, std::span<const BusNote> notes, Field field) {
  std::vector<std::uint64_t> column;
  column.reserve(notes.size());
  for (const BusNote& note : notes) column.push_back(field(note));
  write_column(out, column);
}

/// What a note is, in one number.
std::uint64_t note_shape(const BusNote& note) {
  return static_cast<std::uint64_t>(note.kind) | std::uint64_t{note.processor} << 4 |
         std::uint64_t{note.locked} << 8 | std::uint64_t{note.is_lone} << 9 |
         std::uint64_t{note.size} << 12;
}

BusNote note_of(std::uint64_t shape, ByteReader& in) {
  constexpr std::uint64_t kMostBytes = 8;
  if ((shape & 15) > kLastNoteKind || shape >> 12 > kMostBytes || (shape >> 10 & 3) != 0)
    in.fail("bus notes: expected a kind of note, found " + std::to_string(shape));
  BusNote note;
  note.kind = static_cast<BusNote::Kind>(shape & 15);
  note.processor = static_cast<std::uint8_t>(shape >> 4 & 15);
  note.locked = (shape >> 8 & 1) != 0;
  note.is_lone = (shape >> 9 & 1) != 0;
  note.size = static_cast<std::uint8_t>(shape >> 12);
  return note;
}

}  // namespace

std::vector<std::uint8_t> encode_machine(const MachineInfo& machine) {
  ByteWriter out;
  out.varint(machine.processors);
  out.u8(machine.shows_sharing ? 1 : 0);
  out.u8(machine.leaves_out ? 1 : 0);
  return out.take();
}

MachineInfo decode_machine(ByteReader& in) {
  MachineInfo machine;
  machine.processors = in.count("processors", kMostProcessors);
  if (machine.processors < 2)
    in.fail("processors: expected several, found " + std::to_string(machine.processors));
  machine.shows_sharing = in.count("shows sharing", 1) != 0;
  machine.leaves_out = in.count("leaves external writes out", 1) != 0;
  in.expect_end("the machine chunk");
  return machine;
}

std::vector<std::uint8_t> encode_bus_notes(std::span<const BusNote> notes) {
  ByteWriter out;
  out.varint(notes.size());
  write_notes(out, notes, note_shape);
  write_notes(out, notes, [](const BusNote& note) { return note.clock; });
  write_notes(out, notes, [](const BusNote& note) { return std::uint64_t{note.address.value}; });
  write_notes(out, notes, [](const BusNote& note) { return note.data; });
  return out.take();
}

void decode_bus_notes(ByteReader& in, std::vector<BusNote>& notes) {
  const std::size_t count = in.count("bus notes", kEventChunkRows);
  const auto shape = read_column(in, count, "bus notes");
  const auto clock = read_column(in, count, "clocks of notes");
  const auto address = read_column(in, count, "addresses of notes");
  const auto data = read_column(in, count, "data of notes");
  in.expect_end("the bus notes chunk");
  for (std::size_t i = 0; i < count; ++i) {
    BusNote note = note_of(shape[i], in);
    note.clock = clock[i];
    if (address[i] >> kAddressBits != 0) in.fail("addresses of notes: expected 52 bits");
    note.address = PhysAddr{address[i]};
    note.data = data[i];
    notes.push_back(note);
  }
}

std::vector<std::uint8_t> encode_edges(const Edges& edges) {
  ByteWriter out;
  out.varint(edges.processor);
  out.varint(edges.transactions.size());
  write_column(out, edges.transactions);
  return out.take();
}

Edges decode_edges(ByteReader& in) {
  Edges edges;
  edges.processor = in.count("processor", kMostProcessors);
  const std::size_t count = in.count("edges", kEventChunkRows);
  edges.transactions = read_column(in, count, "edges");
  in.expect_end("the edges chunk");
  if (!std::is_sorted(edges.transactions.begin(), edges.transactions.end()))
    in.fail("edges: expected ascending numbers of transactions");
  return edges;
}

}  // namespace citcat
