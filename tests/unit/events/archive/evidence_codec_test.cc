#include "events/archive/evidence_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/io/column.h"
#include "formats/io/error.h"
#include "unit/events/archive/random_recording.h"

namespace citcat {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

template <typename Chunk>
std::vector<BusTransaction> decode(std::span<const std::uint8_t> payload, std::size_t block = 7) {
  ByteReader in(payload, "chunk");
  Chunk chunk(in);
  std::vector<BusTransaction> all;
  std::vector<BusTransaction> some(block);
  while (const std::size_t n = chunk.next_block(some))
    all.insert(all.end(), &some[0], &some[0] + n);
  return all;
}

void expect_equal(const std::vector<BusTransaction>& expected,
                  const std::vector<BusTransaction>& found) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    test::expect_equal_evidence(expected[i], found[i]);
}

BusTransaction store(std::uint64_t index, std::uint64_t address, std::uint8_t value) {
  BusTransaction t;
  t.index = index;
  t.op = BusOp::data_write;
  t.size = 1;
  t.flags = kPositionKnown | kClockKnown;
  t.address = PhysAddr{address};
  t.data[0] = value;
  return t;
}

/// Two stores and a halt, which follows three transactions that were left out.
std::vector<BusTransaction> example() {
  std::vector<BusTransaction> all{store(0, 0x10, 0xaa), store(1, 0x11, 0xbb), {}};
  all[0].clock = 100;
  all[0].position.instruction = 5;
  all[1].clock = 103;
  all[1].position.instruction = 6;
  all[2].index = 5;
  all[2].op = BusOp::halt;
  return all;
}
/// The same by hand, from docs/formats/archive.md.
constexpr std::uint8_t kExample[] = {
    3,    3,                             // transactions, steps
    0x82, 0x82, 0x80, 0x06, 0xc1, 0x05,  // C00102h; 1 byte, clock elsewhere, 5 more
    0x82, 0x82, 0x80, 0x06, 0x8c, 0x01,  // the same; 0 bytes, 3 clocks, 1 more
    0x06, 0x80, 0x80, 0x01,              // 6; index elsewhere
    0,    1,    2,                       // steps of the transactions
    0x20,                                // address: 16 more
    0,    3,                             // index: all 3
    0,    0xc8, 0x01,                    // clock: all 100
    0xaa, 0xbb,
};

TEST(EvidenceCodec, IsTheDocumentedBytes) {
  EvidenceEncoder encoder;
  encoder.add(example());
  EXPECT_THAT(encoder.encode(), ElementsAreArray(kExample));
  expect_equal(example(), decode<EvidenceChunk>(kExample));
}

TEST(EvidenceCodec, DependsOnTheTransactionsAlone) {
  test::RandomRecording random(7);
  std::vector<BusTransaction> all;
  for (std::uint64_t i = 0; i < 3000; ++i) all.push_back(random.transaction(i));
  EvidenceEncoder once, used;
  once.add(all);
  used.add(example());
  used.clear();
  std::span<const BusTransaction> rest(all);
  for (std::size_t n = 1; !rest.empty(); n = n * 3 % 401) {
    const auto some = rest.first(std::min(n, rest.size()));
    used.add(some);
    rest = rest.subspan(some.size());
  }
  const auto payload = once.encode();
  EXPECT_EQ(used.encode(), payload);
  for (const std::size_t block : {1, 128, 5000})
    expect_equal(all, decode<EvidenceChunk>(payload, block));
}

/// A line of `parts` parts, as the bus has it.
void add_line(std::vector<BusTransaction>& all, BusTransaction part, unsigned parts) {
  for (unsigned i = 0; i < parts; ++i) {
    part.index = all.empty() ? 0 : all.back().index + 1;
    if (part.op == BusOp::data_write) std::fill_n(part.data.begin(), part.size, std::uint8_t(i));
    all.push_back(part);
    part.address = part.address.plus32(part.size);
  }
}

BusTransaction line_part(BusOp op, std::uint32_t address, std::uint8_t size, Position position) {
  BusTransaction t;
  t.op = op;
  t.size = size;
  t.flags = kLine | kPositionKnown | kClockKnown;
  t.address = PhysAddr{address};
  t.position = position;
  return t;
}

std::vector<std::pair<BusTransaction, unsigned>> decode_lines(
    std::span<const std::uint8_t> payload) {
  ByteReader in(payload, "chunk");
  EvidenceChunk chunk(in);
  std::vector<std::pair<BusTransaction, unsigned>> all;
  std::array<BusTransaction, 3> some;
  std::array<std::uint8_t, 3> parts{};
  while (const std::size_t n = chunk.next_lines(some, parts)) {
    for (std::size_t i = 0; i < n; ++i) all.emplace_back(some[i], parts[i]);
  }
  return all;
}

TEST(EvidenceCodec, JoinsThePartsOfALineAndNothingElse) {
  std::vector<BusTransaction> all;
  add_line(all, line_part(BusOp::data_read, 0x1000, 8, {5, 0}), 4);
  add_line(all, line_part(BusOp::data_read, 0x1020, 8, {5, 0}), 4);   // the next line
  add_line(all, line_part(BusOp::code_read, 0x1040, 16, {5, 0}), 2);  // another operation
  add_line(all, line_part(BusOp::code_read, 0x1060, 16, {6, 0}), 1);  // another instruction
  add_line(all, line_part(BusOp::code_read, 0x1070, 16, {7, 0}), 1);
  BusTransaction written = line_part(BusOp::data_write, 0x2000, 8, {7, 3});
  written.flags |= kWriteBack;
  add_line(all, written, 4);
  add_line(all, line_part(BusOp::data_read, 0x3000, 8, {7, 3}), 1);
  add_line(all, line_part(BusOp::data_read, 0x3008, 8, {7, 4}), 1);  // another iteration
  BusTransaction word = line_part(BusOp::data_read, 0x4000, 4, {8, 0});
  word.flags &= static_cast<std::uint16_t>(~kLine);
  add_line(all, word, 2);  // no line
  all.back().index += 7;
  EvidenceEncoder encoder;
  encoder.add(all);
  const auto joined = decode_lines(encoder.encode());
  std::vector<std::pair<unsigned, unsigned>> found;
  for (const auto& [t, parts] : joined) found.emplace_back(parts, t.size);
  using Expected = std::vector<std::pair<unsigned, unsigned>>;
  EXPECT_EQ(
      found,
      (Expected{
          {4, 32}, {4, 32}, {2, 32}, {1, 16}, {1, 16}, {4, 32}, {1, 8}, {1, 8}, {1, 4}, {1, 4}}));
  // Each begins like its first part, has the index of its last one and the data of all.
  std::size_t next = 0;
  for (const auto& [t, parts] : joined) {
    EXPECT_EQ(t.address, all[next].address);
    EXPECT_EQ(t.position, all[next].position);
    EXPECT_EQ(t.index, all[next + parts - 1].index);
    for (unsigned i = 0; i < parts; ++i) {
      const BusTransaction& part = all[next + i];
      EXPECT_TRUE(std::equal(part.bytes().begin(), part.bytes().end(), &t.data[i * part.size]));
    }
    next += parts;
  }
  EXPECT_EQ(next, all.size());
}

TEST(EvidenceCodec, KeepsWhatIsFarFromWhatWasBefore) {
  std::vector<BusTransaction> all;
  const auto add = [&](std::uint64_t index, std::uint32_t address, std::uint64_t clock,
                       std::uint64_t instruction, std::uint32_t iteration) {
    all.push_back(store(index, address, 1));
    all.back().clock = clock;
    all.back().position = {instruction, iteration};
  };
  add(9, 0xffffffff, ~std::uint64_t{0}, ~std::uint64_t{0} - 1, 0xffffffff);
  add(3, 0, 0, 0, 0xffffffff);    // everything runs backwards
  add(4, 0x80000001, 15, 15, 0);  // the largest differences of a step
  add(5, 0x80000102, 31, 31, 1);  // the smallest that are none
  add(6, 0x80010203, 31, 31, 2);
  add(7, 0x81010204, 30, 30, 2);
  add(8, 0x7f010205, 0x100000000, 0x200000000, 7);
  EvidenceEncoder encoder;
  encoder.add(all);
  expect_equal(all, decode<EvidenceChunk>(encoder.encode()));
}

TEST(EvidenceCodec, KeepsAddressesBeyond4GiB) {
  std::vector<BusTransaction> all;
  for (const std::uint64_t address :
       {0x1000ull, 0x100001001ull, 0x1002ull, 0xfffffffffffffull, 0x100001003ull, 0x7f00000000ull})
    all.push_back(store(all.size(), address, 1));
  for (std::uint64_t window = 0; window < 300; ++window)
    all.push_back(store(all.size(), window << 32 | 0x10 * window, 2));
  EvidenceEncoder encoder;
  encoder.add(all);
  const std::vector<std::uint8_t> payload = encoder.encode();
  expect_equal(all, decode<EvidenceChunk>(payload));
  // In another chunk they have other numbers.
  encoder.clear();
  encoder.add(std::span(all).subspan(5, 2));
  expect_equal({all[5], all[6]}, decode<EvidenceChunk>(encoder.encode()));
  std::vector<std::uint8_t> cut = payload;
  cut.pop_back();
  EXPECT_THROW(decode<EvidenceChunk>(cut), FormatError);
}

TEST(EvidenceCodec, DoesNotJoinPartsOfDifferent4GiB) {
  std::vector<BusTransaction> all;
  add_line(all, line_part(BusOp::data_read, 0x1000, 16, {5, 0}), 2);
  add_line(all, line_part(BusOp::data_read, 0x2000, 16, {5, 0}), 2);
  for (BusTransaction& t : std::span(all).last(3)) t.address.value += std::uint64_t{7} << 32;
  EvidenceEncoder encoder;
  encoder.add(all);
  std::vector<unsigned> parts;
  for (const auto& [t, count] : decode_lines(encoder.encode())) parts.push_back(count);
  EXPECT_EQ(parts, (std::vector<unsigned>{1, 1, 2}));
}

/// Sizes, flags and differences so that no two steps are equal.
TEST(EvidenceCodec, HoldsAsManyDifferentStepsAsTransactions) {
  std::vector<BusTransaction> all;
  std::uint64_t clock = 0, instruction = 0;
  for (std::uint64_t i = 0; i < kEvidenceChunkTransactions; ++i) {
    BusTransaction t = store(i, 0, 0);
    t.flags = static_cast<std::uint16_t>(kPositionKnown | kClockKnown | (i >> 8 & 3) |
                                         (i >> 10 & 3) << 8);
    t.op = static_cast<BusOp>(1 + (i >> 12) % 12);
    t.size = static_cast<std::uint8_t>(1 + (i >> 12) / 12);
    t.clock = clock += i & 15;
    t.position.instruction = instruction += i >> 4 & 15;
    if (t.op == BusOp::data_read) t.data = {};
    all.push_back(t);
  }
  EvidenceEncoder encoder;
  encoder.add(all);
  EXPECT_TRUE(encoder.full());
  expect_equal(all, decode<EvidenceChunk>(encoder.encode(), 100));
}

struct Damage {
  const char* name;
  std::size_t at;
  std::uint8_t value;
  const char* message;
};

class EvidenceDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(EvidenceDamage, IsRefused) {
  std::vector<std::uint8_t> payload(std::begin(kExample), std::end(kExample));
  payload[GetParam().at] = GetParam().value;
  try {
    decode<EvidenceChunk>(payload);
    FAIL() << "accepted";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    EvidenceCodec, EvidenceDamage,
    ::testing::Values(Damage{"kind", 14, 13, "expected a transaction kind below 13"},
                      Damage{"size", 3, 0xc2, "expected at most 32 bytes"},
                      Damage{"steps", 1, 2, "expected"},
                      Damage{"number", 20, 3, "expected the number of a step"},
                      Damage{"difference", 12, 0xd0, "expected differences of at most 16"},
                      Damage{"clock_of_none", 15, 0x84,
                             "expected no clock or position of what has none"},
                      Damage{"missing_address", 12, 0x8d, "expected"},
                      Damage{"column", 22, 6, "expected a column form"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(EvidenceCodec, RefusesEveryCutAndWhatFollows) {
  for (std::size_t size = 0; size < std::size(kExample); ++size) {
    EXPECT_THROW(decode<EvidenceChunk>(std::span(kExample).first(size)), FormatError) << size;
  }
  std::vector<std::uint8_t> longer(std::begin(kExample), std::end(kExample));
  longer.push_back(0);
  EXPECT_THROW(decode<EvidenceChunk>(longer), FormatError);
}

}  // namespace
}  // namespace citcat
