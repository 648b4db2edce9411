// IDtrace's files byte by byte, as the report lays them out, and what their readers refuse.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "formats/idtrace/block_file.h"
#include "formats/idtrace/code_file.h"
#include "formats/idtrace/count_file.h"
#include "formats/idtrace/idtrace_reader.h"
#include "formats/idtrace/idtrace_writer.h"
#include "formats/io/error.h"
#include "unit/vector_sink.h"

namespace citcat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Bytes = std::vector<std::uint8_t>;

std::unique_ptr<InputStream> stream(const Bytes& bytes) {
  return std::make_unique<InputStream>(std::span<const std::uint8_t>(bytes), "file");
}

void add_word(Bytes& bytes, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// A tag, opcodes, an address: by the report, not by the writer.
Bytes entry(std::initializer_list<int> head, std::uint32_t value) {
  Bytes bytes;
  for (const int byte : head) bytes.push_back(static_cast<std::uint8_t>(byte));
  add_word(bytes, value);
  return bytes;
}

std::vector<IdtraceEntry> read_all(const Bytes& bytes) {
  IdtraceReader reader(stream(bytes));
  std::vector<IdtraceEntry> entries;
  IdtraceEntry e;
  while (reader.next(e)) entries.push_back(e);
  return entries;
}

void expect_refused(const Bytes& bytes, const std::string& message) {
  EXPECT_THAT([&] { read_all(bytes); }, ThrowsMessage<FormatError>(HasSubstr(message)));
}

const Bytes kBranch = joined({entry({0x70}, 0x8048000), entry({0xa0, 0x74}, 0x8048009),
                              entry({0x70}, 0x804800a), entry({0xb0, 0x0f, 0x85}, 0x8048010)});
const Bytes kCache =
    joined({entry({0x60}, 0x8048000), entry({0x13}, 0xbffff000), entry({0x21}, 0x804a000),
            entry({0x31}, 0x1000), entry({0x41}, 0x2000), entry({0x50}, 0)});
const Bytes kExecution = joined({entry({0x80}, 16), entry({0x03}, 0x804a000),
                                 entry({0x90}, 0x8048123), entry({0x23}, 0xbfffeffc)});

TEST(IdtraceTrace, IsReadAsTheReportLaysItOut) {
  const auto branch = read_all(kBranch);
  ASSERT_EQ(branch.size(), 4U);
  EXPECT_EQ(branch[0].tag, IdtraceTag::block_start);
  EXPECT_EQ(branch[0].value, 0x8048000U);
  EXPECT_EQ(branch[1].tag, IdtraceTag::control);
  EXPECT_EQ(branch[1].opcode[0], 0x74);
  EXPECT_THAT(branch[3].opcode, ElementsAre(0x0f, 0x85));
  const auto cache = read_all(kCache);
  ASSERT_EQ(cache.size(), 6U);
  EXPECT_EQ(cache[1].tag, IdtraceTag::read);
  EXPECT_EQ(idtrace_size_bytes(cache[1].size_code), 4);
  const auto execution = read_all(kExecution);
  ASSERT_EQ(execution.size(), 4U);
  EXPECT_EQ(execution[1].tag, IdtraceTag::read_write);
}

TEST(IdtraceTrace, IsWrittenAsItWasRead) {
  for (const Bytes& bytes : {kBranch, kCache, kExecution}) {
    VectorSink sink;
    IdtraceWriter writer(sink, IdtraceReader(stream(bytes)).kind());
    for (const IdtraceEntry& e : read_all(bytes)) writer.write(e);
    writer.flush();
    EXPECT_EQ(sink.all, bytes);
  }
}

TEST(IdtraceTrace, NamesWhatItCannotBe) {
  expect_refused(entry({0xc0}, 1), "file:0: first entry: expected a tag");
  expect_refused(joined({kBranch, entry({0x13}, 0)}),
                 "file:23: tag: expected one of branch traces, found 13h");
  expect_refused(joined({kCache, entry({0x16}, 0)}), "expected 1 to 5 in the tag, found 16h");
  expect_refused(joined({kCache, entry({0x10}, 0)}), "expected 1 to 5 in the tag, found 10h");
  expect_refused(entry({0x61}, 0), "tag: expected 60h, found 61h");
  expect_refused(joined({kCache, entry({0x50}, 7)}), "repeat end: expected the address 0, found 7");
}

TEST(IdtraceTrace, CutAnywhereIsWholeEntriesAndAnError) {
  for (const Bytes& bytes : {kBranch, kCache, kExecution}) {
    for (std::size_t size = 1; size < bytes.size(); ++size) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      IdtraceReader reader(stream(cut));
      std::uint64_t whole = 0;
      IdtraceEntry e;
      try {
        while (reader.next(e)) whole = reader.offset();
        EXPECT_EQ(whole, size);
      } catch (const FormatError& error) {
        EXPECT_LT(whole, size);
        EXPECT_THAT(error.what(), HasSubstr("file:" + std::to_string(whole) + ": entry: expected"));
      }
    }
  }
}

TEST(IdtraceTrace, IsKnownByItsContent) {
  EXPECT_EQ(idtrace_kind_of(kBranch, true), IdtraceKind::branch);
  EXPECT_EQ(idtrace_kind_of(kCache, true), IdtraceKind::cache);
  EXPECT_EQ(idtrace_kind_of(kExecution, true), IdtraceKind::execution);
  const std::span<const std::uint8_t> cut(kExecution.data(), kExecution.size() - 2);
  EXPECT_EQ(idtrace_kind_of(cut, false), IdtraceKind::execution);
  EXPECT_EQ(idtrace_kind_of(cut, true), std::nullopt);
  // A control instruction without a block before it, a line that none begins at, a block where
  // `.blk` has its header.
  EXPECT_EQ(idtrace_kind_of(joined({kBranch, entry({0xa0, 0x74}, 1)}), true), std::nullopt);
  EXPECT_EQ(idtrace_kind_of(entry({0x60}, 3), true), std::nullopt);
  EXPECT_EQ(idtrace_kind_of(entry({0x80}, 4), true), std::nullopt);
}

TEST(IdtraceTrace, SizesWithoutACodeHaveTheNextLarger) {
  EXPECT_EQ(idtrace_size_code(1), 1);
  EXPECT_EQ(idtrace_size_code(2), 2);
  EXPECT_EQ(idtrace_size_code(4), 3);
  EXPECT_EQ(idtrace_size_code(6), 4);
  EXPECT_EQ(idtrace_size_code(8), 4);
  EXPECT_EQ(idtrace_size_code(10), 5);
  EXPECT_EQ(idtrace_size_code(512), 5);
}

// ---- .blk --------------------------------------------------------------------------------------

Bytes block_header(std::uint32_t count, std::uint32_t text_offset) {
  Bytes bytes;
  for (const std::uint32_t word : {count, text_offset, 0x11223344U, 0x55667788U}) {
    add_word(bytes, word);
  }
  return bytes;
}

/// Two blocks: MOV, JZ at 8048000h; REP MOVSB, RET at 8048004h.
const Bytes kFirstBlock{0x00, 0x80, 0x04, 0x08, 2, 0, 0x8b, 0, 2, 1, 0x74, 0, 2, 1};
const Bytes kSecondBlock{0x04, 0x80, 0x04, 0x08, 2, 0xee, 0xa4, 0, 2, 0xfe, 0xc3, 0, 1, 1};
const Bytes kBlocks = joined({block_header(2, 0x8048000), kFirstBlock, kSecondBlock});

void expect_blocks_refused(const Bytes& bytes, const std::string& message) {
  EXPECT_THAT([&] { IdtraceBlocks::load(stream(bytes)); },
              ThrowsMessage<FormatError>(HasSubstr(message)));
}

TEST(IdtraceBlocks, AreFoundByTheirPosition) {
  const IdtraceBlocks blocks = IdtraceBlocks::load(stream(kBlocks));
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks.text_offset(), 0x8048000U);
  EXPECT_EQ(blocks.magic(), (IdtraceMagic{0x11223344, 0x55667788}));
  ASSERT_NE(blocks.at(16), nullptr);
  EXPECT_EQ(blocks.at(16)->address, 0x8048000U);
  ASSERT_NE(blocks.at(30), nullptr);
  EXPECT_EQ(blocks.at(30)->instructions[0].entries, -2);
  EXPECT_EQ(blocks.at(30)->code_bytes(), 3U);
  EXPECT_EQ(blocks.at(17), nullptr);
  EXPECT_EQ(blocks.at(44), nullptr);
}

TEST(IdtraceBlocks, AreWrittenWithTheirPositions) {
  IdtraceBlockWriter writer;
  const std::vector<IdtraceInstruction> first{{0x8b, 2, 1}, {0x74, 2, 1}};
  const std::vector<IdtraceInstruction> second{{0xa4, 2, -2}, {0xc3, 1, 1}};
  EXPECT_EQ(writer.add(0x8048000, first), 16U);
  EXPECT_EQ(writer.add(0x8048004, second), 30U);
  VectorSink sink;
  writer.write(sink, 0x8048000, {0x11223344, 0x55667788});
  Bytes expected = kBlocks;
  expected[16 + kFirstBlock.size() + 5] = 0;  // not used
  EXPECT_EQ(sink.all, expected);
}

TEST(IdtraceBlocks, NameWhatTheyCannotBe) {
  expect_blocks_refused(joined({block_header(3, 0), kFirstBlock}), "file:0: blocks: expected 3");
  expect_blocks_refused(joined({block_header(0, 0), kFirstBlock}),
                        "file:16: expected the end after 0 blocks");
  expect_blocks_refused(joined({block_header(1, 0), {1, 0, 0, 0, 0, 0}}),
                        "file:20: instructions of a block: expected 1 to 255, found 0");
  expect_blocks_refused(joined({block_header(1, 0), {1, 0, 0, 0, 1, 0, 0x90, 0, 16, 0}}),
                        "file:24: size of an instruction: expected 1 to 15 bytes, found 16");
  expect_blocks_refused(joined({block_header(1, 0), {1, 0, 0, 0, 1, 0, 0x90, 0, 1, 3}}),
                        "file:25: entries of an instruction: expected -2 to 2, found 3");
  for (std::size_t size = 0; size < kBlocks.size(); ++size) {
    const Bytes cut(kBlocks.begin(), kBlocks.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(IdtraceBlocks::load(stream(cut)), FormatError) << size;
  }
}

TEST(IdtraceBlocks, AreKnownByTheirContent) {
  EXPECT_TRUE(looks_like_idtrace_blocks(kBlocks, true));
  const std::span<const std::uint8_t> cut(kBlocks.data(), kBlocks.size() - 3);
  EXPECT_FALSE(looks_like_idtrace_blocks(cut, true));
  EXPECT_TRUE(looks_like_idtrace_blocks(cut, false));
  EXPECT_FALSE(looks_like_idtrace_blocks(kBranch, true));
}

// ---- .cnt --------------------------------------------------------------------------------------

TEST(IdtraceCounts, AddUpOverTheSets) {
  Bytes bytes;
  for (const std::uint32_t word : {0x11223344U, 0x55667788U, 7U, 0xffffffffU, 0U, 2U}) {
    add_word(bytes, word);
  }
  const IdtraceCounts counts = IdtraceCounts::load(stream(bytes), 2);
  EXPECT_EQ(counts.sets, 2U);
  EXPECT_THAT(counts.executions, ElementsAre(7U, 0x100000001ULL));
  VectorSink sink;
  write_idtrace_counts(sink, counts.magic, counts.executions);
  EXPECT_EQ(sink.all, bytes);
}

TEST(IdtraceCounts, OfOtherBlocksAreRefused) {
  const IdtraceBlocks blocks = IdtraceBlocks::load(stream(kBlocks));
  Bytes bytes;
  for (const std::uint32_t word : {0x11223344U, 0U, 7U, 1U}) add_word(bytes, word);
  const IdtraceCounts counts = IdtraceCounts::load(stream(bytes), 2);
  EXPECT_THAT(
      [&] { counts.require(blocks, "run.cnt"); },
      ThrowsMessage<FormatError>(HasSubstr("run.cnt:0: magic numbers: expected those of file")));
  bytes.pop_back();
  EXPECT_THROW(IdtraceCounts::load(stream(bytes), 2), FormatError);
}

// ---- code --------------------------------------------------------------------------------------

const Bytes kFirstCode{0x8b, 0x03, 0x74, 0xfc}, kSecondCode{0xf3, 0xa4, 0xc3};

TEST(IdtraceCode, OfTheProgramsFileLiesAtTheAddressLessTheOffset) {
  const IdtraceBlocks blocks = IdtraceBlocks::load(stream(kBlocks));
  const IdtraceCode code = IdtraceCode::load(stream(joined({kFirstCode, kSecondCode})), blocks);
  EXPECT_THAT(code.code(blocks[1]), ElementsAre(0xf3, 0xa4, 0xc3));
  EXPECT_EQ(code.bits(blocks[1]), 32U);
  const IdtraceCode shorter = IdtraceCode::load(stream(kFirstCode), blocks);
  EXPECT_THAT([&] { shorter.code(blocks[1]); },
              ThrowsMessage<FormatError>(HasSubstr("file:4: expected 3 bytes of code")));
}

Bytes code_file(std::uint32_t& magic) {
  IdtraceCodeWriter writer;
  writer.add(32, kFirstCode);
  writer.add(16, kSecondCode);
  magic = writer.magic();
  VectorSink sink;
  writer.write(sink);
  return sink.all;
}

/// kBlocks with the magic of the code.
IdtraceBlocks blocks_of(std::uint32_t magic) {
  Bytes bytes = kBlocks;
  for (int i = 0; i < 4; ++i)
    bytes[8 + static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(magic >> 8 * i);
  return IdtraceBlocks::load(stream(bytes));
}

TEST(IdtraceCode, OfAFileOfOursIsThatOfEachBlock) {
  std::uint32_t magic = 0;
  const Bytes file = code_file(magic);
  const IdtraceBlocks blocks = blocks_of(magic);
  const IdtraceCode code = IdtraceCode::load(stream(file), blocks);
  EXPECT_THAT(code.code(blocks[0]), ElementsAre(0x8b, 0x03, 0x74, 0xfc));
  EXPECT_THAT(code.code(blocks[1]), ElementsAre(0xf3, 0xa4, 0xc3));
  EXPECT_EQ(code.bits(blocks[0]), 32U);
  EXPECT_EQ(code.bits(blocks[1]), 16U);
}

TEST(IdtraceCode, DamagedAnywhereIsRefused) {
  std::uint32_t magic = 0;
  const Bytes file = code_file(magic);
  const IdtraceBlocks blocks = blocks_of(magic);
  constexpr std::size_t kMagicBytes = 8;  // without them it is a program's file
  for (std::size_t at = kMagicBytes; at < file.size(); ++at) {
    Bytes flipped = file;
    flipped[at] ^= 1;
    EXPECT_THROW(IdtraceCode::load(stream(flipped), blocks), FormatError) << at;
    Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(at));
    EXPECT_THROW(IdtraceCode::load(stream(cut), blocks), FormatError) << at;
  }
}

}  // namespace
}  // namespace citcat
