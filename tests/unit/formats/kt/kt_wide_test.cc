// Traces of 64 bits (docs/formats/kt.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <vector>

#include "formats/kt/kt.h"
#include "formats/kt/kt_counter.h"
#include "unit/formats/kt/kt_errors.h"
#include "unit/vector_sink.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Bytes = std::vector<std::uint8_t>;

KtInstruction random_instruction(std::mt19937_64& random) {
  KtInstruction i;
  i.set_wide_eip(random());
  i.bits = static_cast<std::uint8_t>(16 << random() % 3);
  i.size = static_cast<std::uint8_t>(1 + random() % 15);
  for (std::size_t k = 0; k < i.size; ++k) i.code[k] = static_cast<std::uint8_t>(random());
  i.address_count = static_cast<std::uint8_t>(random() % 3);
  for (std::size_t k = 0; k < i.address_count; ++k) i.set_wide_address(k, random());
  return i;
}

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes(kKtWideMark.begin(), kKtWideMark.end());
  for (const int value : values) bytes.push_back(static_cast<std::uint8_t>(value));
  return bytes;
}

TEST(KtWide, IsReadAsItWasWritten) {
  std::mt19937_64 random(7);
  VectorSink sink;
  std::vector<KtRecord> records;
  {
    KtWriter writer(sink, KtForm::wide);
    for (int n = 0; n < 20000; ++n) {
      KtRecord record;
      if (n % 50 == 3) {
        record.kind = KtRecord::Kind::process;
        record.pid = static_cast<std::uint32_t>(random());
        writer.process(record.pid);
      } else if (n % 50 == 7) {
        record.kind = KtRecord::Kind::translation;
        record.frame = static_cast<std::uint32_t>(random());
        const std::uint64_t page = random() & ~std::uint64_t{0xfff};
        record.page = static_cast<std::uint32_t>(page);
        record.page_high = static_cast<std::uint32_t>(page >> 32);
        writer.translation(record.frame, page);
      } else {
        record.instruction = random_instruction(random);
        writer.instruction(record.instruction);
      }
      records.push_back(record);
    }
    writer.flush();
    EXPECT_EQ(writer.size(), sink.all.size());
  }
  EXPECT_EQ(sink.all.size() % 8, 0u);
  KtReader reader(sink.all, "x.kt");
  KtRecord record;
  for (const KtRecord& expected : records) {
    ASSERT_TRUE(reader.next(record));
    ASSERT_TRUE(record == expected);
  }
  EXPECT_FALSE(reader.next(record));
  EXPECT_TRUE(reader.is_wide());
}

TEST(KtWide, HasTheBytesThatItsPageShows) {
  VectorSink sink;
  KtWriter writer(sink, KtForm::wide);
  KtInstruction i;
  i.set_wide_eip(0xffffffff81000010);
  i.bits = 64;
  i.size = 3;
  i.code = {0x48, 0x89, 0x03};
  i.address_count = 1;
  i.set_wide_address(0, 0xffff888000001000);
  writer.instruction(i);
  writer.flush();
  EXPECT_EQ(sink.all, bytes_of({0x10, 0, 0, 0x81, 0xff, 0xff, 0xff, 0xff, 0x13, 0x48, 0x89, 3,
                                0,    0, 0, 0,    0,    0x10, 0,    0,    0x80, 0x88, 0xff, 0xff}));
}

TEST(KtWide, IsRefusedWhereItIsDamaged) {
  expect_kt_error(bytes_of({1, 2, 3}), "before the end");
  expect_kt_error(bytes_of({0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0}), "found none");
  expect_kt_error(bytes_of({0, 0, 0, 0, 0, 0, 0, 0, 0x31, 0, 0, 0, 0, 0, 0, 0}),
                  "at most 2 addresses");
  expect_kt_error(bytes_of({0, 0, 0, 0, 0, 0, 0, 0, 0x85, 0, 0, 0, 0, 0, 0, 0}), "record type");
  expect_kt_error(bytes_of({0, 0, 0, 0, 1, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0}), "zeros");
  Bytes version(kKtWideMark.begin(), kKtWideMark.end());
  version[5] = 2;
  expect_kt_error(version, "version 1");
}

TEST(KtWide, IsRefusedByAFormOfFileThatHasAddressesOf32Bits) {
  class NarrowSink final : public TraceSink {
   public:
    void write(std::span<const std::uint8_t> /*bytes*/) override {}
    void finish() override {}
  } sink;
  EXPECT_THAT([&] { KtWriter(sink, KtForm::wide); },
              ThrowsMessage<UsageError>(HasSubstr("64 bits")));
}

TEST(KtWide, CountsStringsBehindRexAsOne) {
  const Bytes movsq{0xf3, 0x48, 0xa5};
  EXPECT_TRUE(is_repeated_string(movsq, true));
  EXPECT_FALSE(is_repeated_string(movsq));
}

}  // namespace
}  // namespace citcat
