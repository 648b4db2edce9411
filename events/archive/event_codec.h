#pragma once
// The events of a recording as payloads of archive chunks (docs/formats/archive.md, section 3),
// like those of recording_codec.h.

#include <cstdint>
#include <span>
#include <vector>

#include "events/recording.h"
#include "formats/io/byte_reader.h"

namespace citcat {

// `lean` leaves out what ArchiveMeta::lean says. Decoding appends.
std::vector<std::uint8_t> encode_interrupts(std::span<const Interrupt> events, bool lean);
void decode_interrupts(ByteReader& in, std::vector<Interrupt>& events);
std::vector<std::uint8_t> encode_external_writes(std::span<const ExternalWrite> events, bool lean);
void decode_external_writes(ByteReader& in, ExternalWrites& events);
std::vector<std::uint8_t> encode_io_reads(std::span<const IoRead> events, bool lean);
void decode_io_reads(ByteReader& in, IoReads& events);
std::vector<std::uint8_t> encode_internal_reads(std::span<const InternalRead> events, bool lean);
void decode_internal_reads(ByteReader& in, InternalReads& events);
std::vector<std::uint8_t> encode_dropped_translations(std::span<const DroppedTranslation> events,
                                                      bool lean);
void decode_dropped_translations(ByteReader& in, std::vector<DroppedTranslation>& events);

}  // namespace citcat
