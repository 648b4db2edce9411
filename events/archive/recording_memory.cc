#include "events/archive/recording_memory.h"

#include <algorithm>

#include "events/archive/container.h"

namespace citcat {

namespace {

template <class Events>
std::uint64_t packed_memory(const Events& events) {
  constexpr std::uint64_t kWhileGrowing = 2;  // room that a vector keeps
  return kWhileGrowing * events.stored_bytes();
}

}  // namespace

ChunkMemory chunk_memory(const ChunkRow& chunk, std::uint64_t rows) {
  const std::uint64_t most = std::min(rows, kMaxChunkBytes);
  return {most * chunk.row_bytes, most * chunk.columns * sizeof(std::uint64_t)};
}

std::uint64_t packed_memory(const Schedule& schedule) {
  return packed_memory(schedule.external_writes) + packed_memory(schedule.io_reads) +
         packed_memory(schedule.internal_reads);
}

std::uint64_t allowed_memory(const Recording& recording, std::uint64_t uncounted_values,
                             std::uint64_t file_bytes) {
  constexpr std::uint64_t kAlways = std::uint64_t{64} << 20, kForByteOfFile = 256;
  constexpr std::uint64_t kForTransaction = 2 * sizeof(MemoryImage::Page);
  constexpr std::uint64_t kForInstruction = 2 * sizeof(InternalRead);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  const std::uint64_t transactions = std::min(recording.totals.transactions, kMost);
  const std::uint64_t instructions =
      std::min(recording.instructions.value_or(uncounted_values), kMost);
  return kAlways + kForByteOfFile * file_bytes + kForTransaction * transactions +
         kForInstruction * instructions;
}

}  // namespace citcat
