// The decoders of recording chunks. Hashes would stop a fuzzer at once, so it works below them: the
// first byte selects a decoder, the rest is the payload. Numbers stay as they are, or the inputs of
// the corpus would mean others.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "events/archive/event_codec.h"
#include "events/archive/evidence_codec.h"
#include "events/archive/machine_codec.h"
#include "events/archive/recording_codec.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

namespace {

void decode_evidence(citcat::ByteReader& in) {
  citcat::EvidenceChunk chunk(in), lines = chunk;
  std::array<citcat::BusTransaction, 100> block;
  std::array<std::uint8_t, 100> parts;
  while (chunk.next_block(block) != 0) {
  }
  while (lines.next_lines(block, parts) != 0) {
  }
}

void decode_digests(citcat::ByteReader& in) {
  std::vector<citcat::ReplayDigest> digests;
  citcat::decode_digests(in, digests);
}

void decode_bus_notes(citcat::ByteReader& in) {
  std::vector<citcat::BusNote> notes;
  citcat::decode_bus_notes(in, notes);
}

void decode(unsigned kind, citcat::ByteReader& in) {
  citcat::Recording recording;
  citcat::ArchiveMeta meta;
  switch (kind) {
    case 0:
      return citcat::decode_meta(in, recording, meta);
    case 1:
      return void(citcat::decode_cpu(in));
    case 2:
      return citcat::decode_image(in, recording.image);
    case 3:
      return citcat::decode_interrupts(in, recording.interrupts);
    case 4:
      return citcat::decode_external_writes(in, recording.external_writes);
    case 5:
      return citcat::decode_io_reads(in, recording.io_reads);
    case 6:
      return citcat::decode_internal_reads(in, recording.internal_reads);
    case 7:
      return decode_digests(in);
    case 8:
      return void(citcat::decode_lost_chunk(in));
    case 11:
      return void(citcat::decode_machine(in));
    case 12:
      return decode_bus_notes(in);
    case 13:
      return void(citcat::decode_edges(in));
    default:
      return decode_evidence(in);
  }
}

}  // namespace

CITCAT_FUZZ_TARGET(recording) {
  if (size == 0) return 0;
  try {
    citcat::ByteReader in({data + 1, size - 1}, "input");
    decode(data[0] % 16U, in);
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
