#pragma once
// The header of a chunk in an archive's container (docs/formats/archive.md).

#include <cstdint>

#include "formats/io/hash.h"

namespace citcat {

/// Four ASCII characters, the first in the lowest byte.
using ChunkKind = std::uint32_t;
constexpr ChunkKind chunk_kind(const char (&name)[5]) {
  ChunkKind kind = 0;
  for (int i = 3; i >= 0; --i) kind = kind << 8 | static_cast<unsigned char>(name[i]);
  return kind;
}

/// The fields of a chunk header.
struct ChunkInfo {
  ChunkKind kind = 0;
  std::uint32_t sequence = 0;      ///< ordinal in the file, from 0, index and end chunks included
  std::uint64_t offset = 0;        ///< of its header in the file
  bool compressed = false;         ///< the payload is one zstd frame
  std::uint64_t stored_bytes = 0;  ///< of the payload in the file
  std::uint64_t plain_bytes = 0;   ///< of the payload after decompression
  Hash128 hash;                    ///< XXH3-128 of the payload as stored
  bool operator==(const ChunkInfo&) const = default;
};

}  // namespace citcat
