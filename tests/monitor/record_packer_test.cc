// Packed records: what the bytes are, and that they are the records again.

#include "monitor/bus/record_packer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "formats/records/record_unpacker.h"

namespace citcat::monitor {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// A record of 40 bytes, as docs/formats/capture.md has it.
Bytes whole(const RecordFields& r, std::span<const std::uint8_t> data) {
  Bytes out;
  const auto add = [&out](auto value) {
    for (std::size_t n = 0; n < sizeof value; ++n)
      out.push_back(static_cast<std::uint8_t>(std::uint64_t{value} >> 8 * n));
  };
  add(r.instructions), add(r.clock), add(r.address), add(r.iterations);
  add(static_cast<std::uint32_t>(r.what | data.size() << 8));
  out.insert(out.end(), data.begin(), data.end());
  out.resize(40);
  return out;
}

Bytes content(std::span<const std::uint8_t> chunk) {
  return {chunk.begin() + kRecordChunkHeaderBytes, chunk.end()};
}

TEST(RecordPacker, LeavesOutWhatIsKnown) {
  RecordPacker packer;
  const Bytes code{0x90, 0x90, 0x90, 0x90};
  // Each is a fetch (type 1), and takes two clocks.
  ASSERT_TRUE(packer.put({100, 0, 7, 0x1000, 1, 2}, code));
  ASSERT_TRUE(packer.put({101, 0, 10, 0x1004, 1, 2}, code));
  ASSERT_TRUE(packer.put({104, 0, 15, 0x1000, 1, 2}, code));
  ASSERT_TRUE(packer.put({104, 1, 18, 0x1004, 1, 2}, code));
  const auto chunk = packer.chunk();
  // Kind 0 is defined; its address is far, its data are new. Then one instruction later behind it;
  // three later, 8 bytes before; at once, but with an iteration.
  EXPECT_EQ(content(chunk), (Bytes{0x0f, 0x02, 1,    4,    0,    0,    2,     //
                                   0xc0, 0x01, 0x80, 0x90, 0x90, 0x90, 0x90,  //
                                   0x90, 0x90, 0x90, 0x90, 0x90,              //
                                   0x60, 0x06, 0x1e, 0x30, 0x00, 0x02}));
}

/// Records as a monitor makes them, and some as it does not.
class RandomRecords {
 public:
  explicit RandomRecords(unsigned seed) : random_(seed) {}

  void next() {
    static constexpr std::array<std::uint8_t, 6> kSizes{1, 2, 3, 4, 4, 16};
    const unsigned kind = below(20) == 0 ? below(400) : below(6);
    data_.resize(kSizes[kind % kSizes.size()]);
    record_.what = (1 + kind % 250) | kind / 7 << 16 | kind / 100 << 24;
    const std::uint64_t before = record_.instructions + record_.iterations;
    record_.iterations = below(9) == 0 ? record_.iterations + 1 : below(30) == 0 ? below(1000) : 0;
    if (below(3) == 0) record_.instructions += below(50) == 0 ? random_() : below(4);
    record_.clock += static_cast<std::uint32_t>(record_.clocks + record_.instructions +
                                                record_.iterations - before);
    if (below(100) == 0) record_.clock = below(1u << 31);
    record_.clocks = static_cast<std::uint8_t>(2 + kind % 3);
    record_.address = below(4) == 0 ? static_cast<std::uint32_t>(random_())
                                    : record_.address + static_cast<std::uint32_t>(data_.size());
    if (data_.size() == 16) record_.address &= ~15u;
    if (below(3) == 0)
      for (std::uint8_t& byte : data_) byte = static_cast<std::uint8_t>(random_());
    counted_ = below(200) != 0;
  }
  RecordFields record() const {
    RecordFields its = record_;
    if (!counted_) its.instructions = ~std::uint64_t{0};
    return its;
  }
  std::span<const std::uint8_t> data() const { return data_; }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }

  std::mt19937_64 random_;
  RecordFields record_;
  Bytes data_;
  bool counted_ = true;
};

TEST(RecordPacker, PacksNothingButTheRecords) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    RecordPacker packer;
    RecordUnpacker unpacker;
    RandomRecords records(seed);
    Bytes expected, unpacked;
    std::uint64_t packed = 0, last = 0;
    const auto send = [&] {
      const auto chunk = packer.chunk();
      const auto header = RecordChunkHeader::of(chunk.first<kRecordChunkHeaderBytes>());
      const auto taken = unpacker.unpack(header, content(chunk), unpacked);
      EXPECT_EQ(taken.problem, "");
      EXPECT_EQ(taken.bytes, header.bytes);
      EXPECT_EQ(taken.records, header.records);
      EXPECT_EQ(taken.last, header.last);
      EXPECT_EQ(header.last, last);
      packed += chunk.size();
      packer.clear();
    };
    for (unsigned n = 0; n < 100000; ++n) {
      records.next();
      const RecordFields record = records.record();
      if (!packer.put(record, records.data())) {
        send();
        ASSERT_TRUE(packer.put(record, records.data()));
      }
      if (record.instructions != ~std::uint64_t{0}) last = record.instructions;
      const Bytes its = whole(record, records.data());
      expected.insert(expected.end(), its.begin(), its.end());
    }
    send();
    EXPECT_TRUE(packer.chunk().empty());
    ASSERT_EQ(unpacked.size(), expected.size());
    EXPECT_TRUE(unpacked == expected)
        << "record "
        << (std::mismatch(unpacked.begin(), unpacked.end(), expected.begin()).first -
            unpacked.begin()) /
               40;
    EXPECT_GT(packed, expected.size() / 40);
  }
}

TEST(RecordPacker, LeavesWholeRecordsWhereverAChunkIsCut) {
  RecordPacker packer;
  RandomRecords records(7);
  Bytes expected;
  for (unsigned n = 0; n < 200; ++n) {
    records.next();
    ASSERT_TRUE(packer.put(records.record(), records.data()));
    const Bytes its = whole(records.record(), records.data());
    expected.insert(expected.end(), its.begin(), its.end());
  }
  const auto chunk = packer.chunk();
  const auto header = RecordChunkHeader::of(chunk.first<kRecordChunkHeaderBytes>());
  const Bytes packed = content(chunk);
  std::size_t before = 0;
  for (std::size_t size = 0; size <= packed.size(); ++size) {
    Bytes unpacked;
    const auto taken = RecordUnpacker().unpack(header, std::span(packed).first(size), unpacked);
    EXPECT_EQ(taken.problem, "");
    EXPECT_LE(taken.bytes, size);
    EXPECT_GE(taken.records, before);
    before = taken.records;
    ASSERT_EQ(unpacked.size(), 40 * taken.records);
    EXPECT_TRUE(std::equal(unpacked.begin(), unpacked.end(), expected.begin()));
  }
  EXPECT_EQ(before, 200u);
}

}  // namespace
}  // namespace citcat::monitor
