#pragma once
// How much memory the contents of an archive may take. Rows that are all alike take almost no room
// in a file, so the size of a chunk there says nothing about the memory that it needs.

#include <cstdint>

#include "events/archive/chunk_table.h"
#include "events/recording.h"

namespace citcat {

/// Bytes that a chunk takes at most.
struct ChunkMemory {
  std::uint64_t kept = 0;      ///< of what is made of it
  std::uint64_t decoding = 0;  ///< besides, while that is made
};
/// What a chunk of so many rows takes in memory; 0 for kinds without rows.
ChunkMemory chunk_memory(const ChunkRow& chunk, std::uint64_t rows);
/// Bytes that the packed events of a recording take by now.
std::uint64_t packed_memory(const Schedule& schedule);

/// How much memory a recording with these totals can take: a transaction brings at most a page of
/// the image or an event, an instruction at most a value that crossed no bus; if instructions were
/// not counted, there are `uncounted_values` of these. What people added by hand is small.
std::uint64_t allowed_memory(const Recording& recording, std::uint64_t uncounted_values,
                             std::uint64_t file_bytes);

}  // namespace citcat
