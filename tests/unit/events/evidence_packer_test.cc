#include "events/evidence_packer.h"

#include <gtest/gtest.h>

#include "formats/byte_reader.h"
#include "formats/error.h"

namespace citcat {
namespace {

BusTransaction numbered(std::uint64_t i) {
  BusTransaction t;
  t.index = i;
  t.op = i % 3 == 0 ? BusOp::data_write : BusOp::code_read;
  t.size = 4;
  t.address = PhysAddr{static_cast<std::uint32_t>(i * 4)};
  t.flags = kClockKnown;
  t.clock = 3 * i;
  if (t.op == BusOp::data_write) t.data[0] = static_cast<std::uint8_t>(i);
  return t;
}

/// The transactions of chunks, in the order in which they came.
struct Chunks {
  std::vector<std::vector<BusTransaction>> chunks;
  EvidencePacker::ChunkSink sink() {
    return [this](const std::shared_ptr<EvidenceEncoder>& encoder,
                  const std::shared_ptr<Recycler<EvidenceEncoder>>& idle) {
      const std::vector<std::uint8_t> payload = encoder->encode();
      encoder->clear();
      idle->give_back(encoder);
      ByteReader in(payload, "chunk");
      EvidenceChunk chunk(in);
      chunks.emplace_back(chunk.size());
      EXPECT_EQ(chunk.next_block(chunks.back()), chunk.size());
    };
  }
};

void add(EvidencePacker& packer, std::uint64_t first, std::uint64_t count, std::size_t block) {
  std::vector<BusTransaction> transactions;
  for (std::uint64_t i = first; i < first + count; ++i) {
    transactions.push_back(numbered(i));
    if (transactions.size() < block && i + 1 < first + count) continue;
    packer.add(transactions);
    transactions.clear();
  }
}

TEST(EvidencePacker, EndsChunksWhereTheyAreFullAndWhereItIsFlushed) {
  Chunks found;
  EvidencePacker packer(found.sink());
  const std::vector<std::uint64_t> parts{5, 3 * kEvidenceChunkTransactions + 7, 0, 100,
                                         kEvidenceChunkTransactions};
  std::uint64_t first = 0;
  for (const std::uint64_t part : parts) {
    add(packer, first, part, 777);
    packer.flush();
    first += part;
  }
  std::vector<std::size_t> sizes;
  std::uint64_t index = 0;
  for (const auto& chunk : found.chunks) {
    sizes.push_back(chunk.size());
    for (const BusTransaction& t : chunk) {
      const BusTransaction expected = numbered(index++);
      ASSERT_EQ(t.index, expected.index);
      ASSERT_EQ(t.address, expected.address);
      ASSERT_EQ(t.clock, expected.clock);
      ASSERT_EQ(t.data, expected.data);
    }
  }
  const std::size_t full = kEvidenceChunkTransactions;
  EXPECT_EQ(sizes, (std::vector<std::size_t>{5, full, full, full, 7, 100, full}));
  EXPECT_EQ(index, first);
}

TEST(EvidencePacker, KeepsTheOrderOfCopiesAndOfWhatIsOwned) {
  Chunks found;
  EvidencePacker packer(found.sink());
  std::vector<std::weak_ptr<const void>> owners;
  std::uint64_t first = 0;
  for (std::uint64_t block = 0; block < 300; ++block) {
    const std::uint64_t count = 1 + block * 7 % 900;
    if (block % 3 == 0) {
      add(packer, first, count, count);
    } else {
      auto transactions = std::make_shared<std::vector<BusTransaction>>();
      for (std::uint64_t i = first; i < first + count; ++i) transactions->push_back(numbered(i));
      owners.emplace_back(transactions);
      packer.add(*transactions, transactions);
    }
    first += count;
  }
  packer.flush();
  std::uint64_t index = 0;
  for (const auto& chunk : found.chunks) {
    for (const BusTransaction& t : chunk) ASSERT_EQ(t.index, index++);
  }
  EXPECT_EQ(index, first);
  for (const auto& owner : owners) EXPECT_TRUE(owner.expired());
}

TEST(EvidencePacker, ThrowsWhatTheSinkThrew) {
  for (const int chunks_before : {0, 1, 3}) {
    int left = chunks_before;
    EvidencePacker packer([&left](const auto&, const auto&) {
      if (left-- == 0) throw IoError("the disk is full");
    });
    EXPECT_THROW(
        {
          add(packer, 0, 8 * kEvidenceChunkTransactions, 500);
          packer.flush();
        },
        IoError);
  }
}

TEST(EvidencePacker, DropsWhatWasNotFlushed) {
  Chunks found;
  {
    EvidencePacker packer(found.sink());
    add(packer, 0, 2 * kEvidenceChunkTransactions + 5000, 128);
  }
  EXPECT_LE(found.chunks.size(), 2U);
}

}  // namespace
}  // namespace citcat
