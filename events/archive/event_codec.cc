#include "events/archive/event_codec.h"

#include <cstdint>
#include <string>

#include "events/archive/recording_codec.h"
#include "events/archive/rows.h"
#include "events/startup_event.h"
#include "formats/io/byte_writer.h"

namespace citcat {

namespace {

/// One external write; the builder merges neighbours, so a disk sector or a frame is one event.
constexpr std::uint64_t kMaxExternalBytes = std::uint64_t{1} << 24;

constexpr std::uint64_t kLastAddress = (std::uint64_t{1} << kAddressBits) - 1;

constexpr std::size_t kPositionCells = 3;
constexpr std::size_t kAnchorCells = 4;

/// An unknown position is stored as zero.
void write_position(RowWriter& row, bool known, const Position& position) {
  row.cell(known ? 1 : 0);
  row.cell(known ? position.instruction : 0);
  row.cell(known ? position.iteration : 0);
}

void read_position(RowReader& row, bool& known, Position& position) {
  known = row.cell<std::uint8_t>(1) != 0;
  position.instruction = row.cell();
  position.iteration = row.cell<std::uint32_t>(0xffffffff);
}

void write_anchor(RowWriter& row, const BusAnchor& anchor, bool keep) {
  for (const std::uint64_t count : {anchor.writes, anchor.io, anchor.interrupts, anchor.reads}) {
    row.cell(keep ? count : 0);
  }
}

BusAnchor read_anchor(RowReader& row) {
  BusAnchor anchor;
  anchor.writes = row.cell();
  anchor.io = row.cell();
  anchor.interrupts = row.cell();
  anchor.reads = row.cell();
  return anchor;
}

/// In the columns of a position, where nothing is known in instructions: 2 u, or 2 u + 1 where it
/// is counted from the start, u being the unit's number; then the count.
void write_count(RowWriter& row, const EventCount& count) {
  row.cell(2 * static_cast<std::uint64_t>(count.unit) + (count.from_start ? 1 : 0));
  row.cell(count.value);
  row.cell(0);
}

void read_place(RowReader& row, Interrupt& e) {
  constexpr auto kMax = static_cast<std::uint8_t>(2 * static_cast<int>(kLastCountUnit) + 1);
  const auto known = row.cell<std::uint8_t>(kMax);
  const std::uint64_t value = row.cell();
  const auto iteration = row.cell<std::uint32_t>(0xffffffff);
  if (known > 1) {
    e.count = EventCount{CountUnit{static_cast<std::uint8_t>(known / 2)}, value, known % 2 != 0};
    return;
  }
  e.position_known = known != 0;
  e.position = {value, iteration};
}

}  // namespace

std::vector<std::uint8_t> encode_interrupts(std::span<const Interrupt> events, bool lean) {
  RowWriter row;
  for (const Interrupt& e : events) {
    row.begin_row();
    row.cell(static_cast<std::uint64_t>(e.kind));
    row.cell(e.vector);
    if (e.count && !e.position_known) {
      write_count(row, *e.count);
    } else {
      write_position(row, e.position_known, e.position);
    }
    write_anchor(row, e.anchor, !lean || !e.position_known);
    row.cell(e.transaction);
  }
  ByteWriter out;
  out.varint(events.size());
  row.write(out);
  return out.take();
}

void decode_interrupts(ByteReader& in, std::vector<Interrupt>& events) {
  const std::size_t count = in.count("interrupts", kEventChunkRows);
  RowReader row(in, count, 3 + kPositionCells + kAnchorCells, "interrupts");
  for (std::size_t i = 0; i < count; ++i) {
    row.begin_row(i);
    Interrupt e;
    e.kind = row.cell(kResetInterrupt);
    e.vector = row.cell<std::uint8_t>(0xff);
    read_place(row, e);
    e.anchor = read_anchor(row);
    e.transaction = row.cell();
    events.push_back(e);
  }
  in.expect_end("the interrupts chunk");
}

std::vector<std::uint8_t> encode_external_writes(std::span<const ExternalWrite> events, bool lean) {
  RowWriter row;
  ByteWriter data;
  for (const ExternalWrite& e : events) {
    row.begin_row();
    row.cell(e.address.value);
    row.cell(e.data.size());
    write_position(row, e.position_known, e.position);
    write_anchor(row, e.anchor, !lean || !e.position_known);
    write_anchor(row, e.window_begin, !lean);
    row.cell(e.transaction);
    data.bytes(e.data);
  }
  ByteWriter out;
  out.varint(events.size());
  row.write(out);
  out.bytes(data.view());
  return out.take();
}

void decode_external_writes(ByteReader& in, ExternalWrites& events) {
  const std::size_t count = in.count("external writes", kEventChunkRows);
  RowReader row(in, count, 3 + kPositionCells + 2 * kAnchorCells, "external writes");
  for (std::size_t i = 0; i < count; ++i) {
    row.begin_row(i);
    ExternalWrite e;
    e.address.value = row.cell<std::uint64_t>(kLastAddress);
    const auto data = in.bytes(row.cell<std::uint64_t>(kMaxExternalBytes), "external data");
    e.data.assign(data.begin(), data.end());
    read_position(row, e.position_known, e.position);
    e.anchor = read_anchor(row);
    e.window_begin = read_anchor(row);
    e.transaction = row.cell();
    events.push_back(e);
  }
  in.expect_end("the external writes chunk");
}

std::vector<std::uint8_t> encode_io_reads(std::span<const IoRead> events, bool lean) {
  RowWriter row;
  for (const IoRead& e : events) {
    row.begin_row();
    row.cell(e.port);
    row.cell(e.size);
    row.cell(e.value);
    write_position(row, e.position_known && !lean, e.position);
    row.cell(lean ? 0 : e.transaction);
  }
  ByteWriter out;
  out.varint(events.size());
  row.write(out);
  return out.take();
}

void decode_io_reads(ByteReader& in, IoReads& events) {
  const std::size_t count = in.count("I/O reads", kEventChunkRows);
  RowReader row(in, count, 4 + kPositionCells, "I/O reads");
  for (std::size_t i = 0; i < count; ++i) {
    row.begin_row(i);
    IoRead e;
    e.port = row.cell<std::uint16_t>(0xffff);
    e.size = row.cell<std::uint8_t>(4);
    e.value = row.cell<std::uint32_t>(0xffffffff);
    read_position(row, e.position_known, e.position);
    e.transaction = row.cell();
    events.push_back(e);
  }
  in.expect_end("the I/O reads chunk");
}

std::vector<std::uint8_t> encode_internal_reads(std::span<const InternalRead> events, bool lean) {
  RowWriter row;
  for (const InternalRead& e : events) {
    // EBX and ECX are results of CPUID alone, ECX of RDTSCP and of random numbers too; of the
    // others they are what the registers held anyway.
    const bool all = !lean || e.op == InternalRead::Op::cpuid || e.op >= InternalRead::Op::rdtscp;
    row.begin_row();
    row.cell(static_cast<std::uint64_t>(e.op));
    write_position(row, e.position_known && !lean, e.position);
    row.cell(lean ? 0 : e.ip);
    row.cell(std::uint64_t{e.edx} << 32 | e.eax);
    row.cell(all ? e.ebx : 0);
    row.cell(all ? e.ecx : 0);
  }
  ByteWriter out;
  out.varint(events.size());
  row.write(out);
  return out.take();
}

void decode_internal_reads(ByteReader& in, InternalReads& events) {
  const std::size_t count = in.count("internal reads", kEventChunkRows);
  RowReader row(in, count, 5 + kPositionCells, "internal reads");
  for (std::size_t i = 0; i < count; ++i) {
    row.begin_row(i);
    InternalRead e;
    e.op = row.cell(InternalRead::Op::rdseed);
    read_position(row, e.position_known, e.position);
    e.ip = row.cell();
    const std::uint64_t value = row.cell();
    e.eax = static_cast<std::uint32_t>(value);
    e.edx = static_cast<std::uint32_t>(value >> 32);
    e.ebx = row.cell<std::uint32_t>(0xffffffff);
    e.ecx = row.cell<std::uint32_t>(0xffffffff);
    events.push_back(e);
  }
  in.expect_end("the internal reads chunk");
}

/// All of it is needed.
std::vector<std::uint8_t> encode_dropped_translations(std::span<const DroppedTranslation> events,
                                                      bool /*lean*/) {
  RowWriter row;
  for (const DroppedTranslation& e : events) {
    row.begin_row();
    row.cell(e.position.instruction);
    row.cell(e.position.iteration);
    row.cell(e.page.page());
  }
  ByteWriter out;
  out.varint(events.size());
  row.write(out);
  return out.take();
}

void decode_dropped_translations(ByteReader& in, std::vector<DroppedTranslation>& events) {
  constexpr std::uint64_t kLastPage = ~std::uint64_t{0} / kPageSize;
  const std::size_t count = in.count("dropped translations", kEventChunkRows);
  RowReader row(in, count, 3, "dropped translations");
  for (std::size_t i = 0; i < count; ++i) {
    row.begin_row(i);
    DroppedTranslation e;
    e.position.instruction = row.cell();
    e.position.iteration = row.cell<std::uint32_t>(0xffffffff);
    e.page = LinearAddr{row.cell<std::uint64_t>(kLastPage) * kPageSize};
    if (!events.empty() && e.position.instruction < events.back().position.instruction) {
      in.fail("dropped translations: expected them in the order of instructions, found " +
              std::to_string(e.position.instruction) + " after " +
              std::to_string(events.back().position.instruction));
    }
    events.push_back(e);
  }
  in.expect_end("the dropped translations chunk");
}

}  // namespace citcat
