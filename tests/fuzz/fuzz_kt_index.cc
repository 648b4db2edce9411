// The index at the end of a KT file on any bytes, and the segments it names. Its hash is made right
// first, which no mutation finds.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "formats/io/hash.h"
#include "formats/kt/kt.h"
#include "formats/kt/kt_index.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

namespace {

/// Where the last row of the seek table says that the index ends, its hash stands.
void repair_hash(std::vector<std::uint8_t>& bytes) {
  // The magic bytes of either version.
  constexpr char kMagic[8] = {'C', 'C', 'K', 'T', 'I', 'N', 'D', 'X'};
  constexpr char kSecond[8] = {'C', 'C', 'K', 'T', 'I', 'D', 'X', '2'};
  for (std::size_t at = 4; at + sizeof kMagic <= bytes.size(); ++at) {
    const bool begins = std::memcmp(&bytes[at], kMagic, sizeof kMagic) == 0 ||
                        std::memcmp(&bytes[at], kSecond, sizeof kSecond) == 0;
    if (!begins) continue;
    std::uint32_t body = 0;
    for (unsigned i = 0; i < 4; ++i) body |= std::uint32_t{bytes[at - 4 + i]} << 8 * i;
    if (body < 8 || body > bytes.size() - at) continue;
    const std::size_t hashed = body - 8;
    const std::uint64_t hash = citcat::hash64(std::span(bytes).subspan(at, hashed));
    for (unsigned i = 0; i < 8; ++i) {
      bytes[at + hashed + i] = static_cast<std::uint8_t>(hash >> 8 * i);
    }
  }
}

void read_segment(const std::string& path, const citcat::KtSegment& segment) {
  constexpr int kMostRecords = 1000;
  try {
    citcat::KtReader reader(path, segment.file_offset);
    citcat::KtRecord record;
    for (int i = 0; i < kMostRecords && reader.next(record); ++i) {
    }
  } catch (const citcat::FormatError&) {
  }
}

void read_notes(const std::string& path, const citcat::KtSegment& segment) {
  try {
    citcat::read_kt_notes(path, segment);
  } catch (const citcat::FormatError&) {
  }
}

}  // namespace

CITCAT_FUZZ_TARGET(kt_index) {
  constexpr std::size_t kMaxSegments = 8;
  std::vector<std::uint8_t> bytes(data, data + size);
  repair_hash(bytes);
  const citcat::fuzz::FileInMemory file(bytes);
  try {
    const std::vector<citcat::KtSegment> segments = citcat::read_kt_index(file.path());
    for (std::size_t i = 0; i < segments.size() && i < kMaxSegments; ++i) {
      read_segment(file.path(), segments[i]);
      read_notes(file.path(), segments[i]);
    }
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
