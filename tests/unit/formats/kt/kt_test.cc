#include "formats/kt/kt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "unit/formats/kt/kt_errors.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using Bytes = std::vector<std::uint8_t>;

class RecordBytes final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> bytes) override {
    EXPECT_EQ(bytes.size() % 4, 0U);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  void finish() override {}
  Bytes all;
};

/// What the format's definition says of a record, byte by byte and on its own.
Bytes by_definition(const KtInstruction& i) {
  Bytes out;
  const auto word = [&out](std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8)
      out.push_back(static_cast<std::uint8_t>(value >> shift));
  };
  word(i.eip);
  out.push_back(static_cast<std::uint8_t>(i.address_count * 16 + i.size));
  for (int k = 0; k < i.size; ++k) out.push_back(i.code[static_cast<std::size_t>(k)]);
  while (out.size() % 4 != 0) out.push_back(0);
  for (int k = 0; k < i.address_count; ++k) word(i.address[static_cast<std::size_t>(k)]);
  return out;
}

KtInstruction random_instruction(std::mt19937& random) {
  KtInstruction i;
  i.eip = static_cast<std::uint32_t>(random());
  i.size = static_cast<std::uint8_t>(1 + random() % 15);
  for (std::size_t k = 0; k < i.size; ++k) i.code[k] = static_cast<std::uint8_t>(random());
  i.address_count = static_cast<std::uint8_t>(random() % 3);
  for (std::size_t k = 0; k < i.address_count; ++k) {
    i.address[k] = static_cast<std::uint32_t>(random());
  }
  return i;
}

Bytes read_error_bytes(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

TEST(Kt, WritesInstructionsAsTheFormatDefinesThem) {
  RecordBytes sink;
  KtWriter writer(sink);
  std::mt19937 random(1);
  Bytes expected;
  for (int n = 0; n < 50000; ++n) {
    const KtInstruction i = random_instruction(random);
    writer.instruction(i);
    const Bytes record = by_definition(i);
    expected.insert(expected.end(), record.begin(), record.end());
    ASSERT_EQ(writer.size(), expected.size());
  }
  writer.flush();
  EXPECT_EQ(writer.instructions(), 50000U);
  EXPECT_EQ(sink.all, expected);
}

TEST(Kt, WritesProcessAndTranslationRecords) {
  RecordBytes sink;
  KtWriter writer(sink);
  writer.process(0x1234);
  writer.translation(0x000b8, 0xc00b8fff);
  writer.flush();
  EXPECT_EQ(sink.all, read_error_bytes({0x34, 0x12, 0, 0, 0x80, 0, 0, 0,  //
                                        0xb8, 0, 0, 0, 0x81, 0x80, 0x0b, 0xc0}));
}

TEST(Kt, ReadsBackWhatWasWritten) {
  RecordBytes sink;
  KtWriter writer(sink);
  std::mt19937 random(2);
  std::vector<KtRecord> expected;
  for (int n = 0; n < 20000; ++n) {
    KtRecord record;
    if (n % 7 == 0) {
      record.kind = KtRecord::Kind::process;
      record.pid = static_cast<std::uint32_t>(random());
      writer.process(record.pid);
    } else if (n % 11 == 0) {
      record.kind = KtRecord::Kind::translation;
      record.frame = static_cast<std::uint32_t>(random());
      record.page = static_cast<std::uint32_t>(random()) & 0xfffff000;
      writer.translation(record.frame, record.page);
    } else {
      record.instruction = random_instruction(random);
      writer.instruction(record.instruction);
    }
    expected.push_back(record);
  }
  writer.flush();
  KtReader reader(sink.all, "memory");
  KtRecord found;
  for (const KtRecord& record : expected) {
    ASSERT_TRUE(reader.next(found));
    ASSERT_EQ(found, record);
  }
  EXPECT_FALSE(reader.next(found));
}

TEST(Kt, RefusesReservedTypesAndImpossibleInstructions) {
  expect_kt_error(read_error_bytes({0, 0, 0, 0, 0x40, 0, 0, 0}), "bad.kt:0: record type");
  expect_kt_error(read_error_bytes({0, 0, 0, 0, 0x82, 0, 0, 0}), "found 82h");
  expect_kt_error(read_error_bytes({0, 0, 0, 0, 0x10, 0, 0, 0}), "found none");
  expect_kt_error(read_error_bytes({0, 0, 0, 0, 0x31, 0x90, 0, 0}), "at most 2 addresses");
  expect_kt_error(read_error_bytes({0, 0, 0, 0, 0x81, 1, 0, 0}), "page address");
}

TEST(Kt, NamesTheOffsetOfARecordThatIsCut) {
  const Bytes whole = read_error_bytes({0, 0, 0, 0, 0x80, 0,    0,    0,  //
                                        1, 0, 0, 0, 0x22, 0x90, 0x90, 0,  //
                                        4, 0, 0, 0, 8,    0,    0,    0});
  for (std::size_t size = 9; size < whole.size(); ++size) {
    expect_kt_error(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)),
                    "bad.kt:8: a");
  }
}

TEST(Kt, HoldsNoInstructionOfZeroOrSixteenBytes) {
  const Bytes code(16, 0x90);
  EXPECT_THROW(KtTemplate(0, std::span(code).first(0), 0), UsageError);
  EXPECT_THROW(KtTemplate(0, code, 0), UsageError);
  EXPECT_THROW(KtTemplate(0, std::span(code).first(1), 3), UsageError);
}

class KtFile : public test::TemporaryFolder {
 protected:
  /// Writes `instructions` records of 8 bytes; without `finish` as an interrupted run would.
  void write(const std::string& name, int instructions, bool finish) {
    const auto sink = open_trace_sink(path(name));
    KtWriter writer(*sink);
    const std::uint8_t nop = 0x90;
    for (int n = 0; n < instructions; ++n) {
      writer.instruction(KtTemplate(static_cast<std::uint32_t>(n), std::span(&nop, 1), 0));
    }
    writer.flush();
    if (finish) sink->finish();
  }
  std::uint32_t count(const std::string& name) {
    KtReader reader(path(name));
    KtRecord record;
    std::uint32_t n = 0;
    while (reader.next(record)) EXPECT_EQ(record.instruction.eip, n++);
    return n;
  }
};

TEST_F(KtFile, IsTheSamePlainAndCompressed) {
  write("a.kt", 300000, true);
  write("a.kt.zst", 300000, true);
  EXPECT_EQ(std::filesystem::file_size(path("a.kt")), 300000U * 8);
  EXPECT_LT(std::filesystem::file_size(path("a.kt.zst")), 300000U * 4);
  EXPECT_EQ(count("a.kt"), 300000U);
  EXPECT_EQ(count("a.kt.zst"), 300000U);
  EXPECT_EQ(names(), (std::vector<std::string>{"a.kt", "a.kt.zst"}));
}

TEST_F(KtFile, InterruptedIsAShorterTraceUnderAnotherName) {
  write("a.kt", 100000, false);
  EXPECT_EQ(names(), std::vector<std::string>{"a.kt.partial"});
  EXPECT_EQ(count("a.kt.partial"), 100000U);
}

TEST_F(KtFile, InterruptedCompressedIsAShorterTraceUnderANameThatSaysSo) {
  write("a.kt.zst", 3000000, false);
  EXPECT_EQ(names(), std::vector<std::string>{"a.kt.zst.partial"});
  const auto left = count("a.kt.zst.partial");
  EXPECT_GT(left, 2900000U);
  EXPECT_LE(left, 3000000U);
}

}  // namespace
}  // namespace citcat
