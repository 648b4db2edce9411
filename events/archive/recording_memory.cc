#include "events/archive/recording_memory.h"

#include <algorithm>
#include <array>

#include "events/archive/container.h"
#include "events/archive/recording_codec.h"

namespace citcat {

namespace {

/// What a row of a chunk becomes in memory, and the columns that are decoded on the way.
struct RowCost {
  ChunkKind kind;
  std::uint64_t row_bytes, columns;
};
constexpr std::array<RowCost, 6> kRowCosts{{
    {kImageChunk, sizeof(MemoryImage::Page), 2},
    {kInterruptChunk, sizeof(Interrupt), 10},
    {kExternalWriteChunk, sizeof(ExternalWrite), 14},
    {kIoReadChunk, sizeof(IoRead), 7},
    {kInternalReadChunk, sizeof(InternalRead), 8},
    {kDigestChunk, sizeof(ReplayDigest), 2},
}};

template <class Events>
std::uint64_t packed_memory(const Events& events) {
  constexpr std::uint64_t kWhileGrowing = 2;  // room that a vector keeps
  return kWhileGrowing * events.stored_bytes();
}

const RowCost* cost_of(ChunkKind kind) {
  const auto found = std::find_if(kRowCosts.begin(), kRowCosts.end(),
                                  [kind](const RowCost& cost) { return cost.kind == kind; });
  return found != kRowCosts.end() ? &*found : nullptr;
}

}  // namespace

bool has_rows(ChunkKind kind) { return cost_of(kind) != nullptr; }

ChunkMemory chunk_memory(ChunkKind kind, std::uint64_t rows) {
  const RowCost* const cost = cost_of(kind);
  if (cost == nullptr) return {};
  const std::uint64_t most = std::min(rows, kMaxChunkBytes);
  return {most * cost->row_bytes, most * cost->columns * sizeof(std::uint64_t)};
}

bool is_packed(ChunkKind kind) {
  return kind == kExternalWriteChunk || kind == kIoReadChunk || kind == kInternalReadChunk;
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
