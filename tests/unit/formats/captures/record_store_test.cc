#include "formats/captures/record_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "formats/io/input.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

Bytes with_header(RecordChunkHeader header, const Bytes& packed) {
  header.bytes = static_cast<std::uint32_t>(packed.size());
  const auto head = header.stored();
  Bytes out(head.begin(), head.end());
  out.insert(out.end(), packed.begin(), packed.end());
  return out;
}

/// Two fetches of a dword, of which the second is known: as docs/formats/capture.md has them.
const Bytes kFetches{0x0f, 0x02, 1,    4,    0,    0,    2,     //
                     0xc0, 0x01, 0x80, 0xa0, 0x34, 0x12, 0xe6,  //
                     0x50, 0x0e};
const Bytes kRecords{5, 0, 0, 0, 0,    0,    0,    0,    9,  0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,  //
                     1, 4, 0, 0, 0xa0, 0x34, 0x12, 0xe6, 0,  0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0,  //
                     6, 0, 0, 0, 0,    0,    0,    0,    12, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,  //
                     1, 4, 0, 0, 0xa0, 0x34, 0x12, 0xe6, 0,  0, 0, 0, 0, 0,    0, 0, 0, 0, 0, 0};

class RecordStoreTest : public test::TemporaryFolder {
 protected:
  /// A file of these chunks.
  void store_chunks(const std::string& name, std::initializer_list<Bytes> chunks) {
    RecordStore out(path(name));
    for (const Bytes& chunk : chunks) out.put(chunk);
    out.finish();
  }
  static Bytes fetches() { return with_header({0, 2, 5, 0, 9, 6}, kFetches); }
  Bytes records_of(const std::string& name) { return read_whole_file(path(name), 1 << 26); }
  /// What is wrong with a file; "" for nothing.
  std::string problem_of(const std::string& name) {
    try {
      (void)records_of(name);
    } catch (const FormatError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(RecordStoreTest, GivesBackTheRecords) {
  store_chunks("a.binz", {fetches()});
  EXPECT_EQ(records_of("a.binz"), kRecords);
  EXPECT_EQ(read_head(path("a.binz"), 40), Bytes(kRecords.begin(), kRecords.begin() + 40));
  // What is known goes on to be known; the kinds of records do not.
  store_chunks("b.binz", {fetches(), with_header({0, 1, 6, 0, 12, 6},
                                                 {0x0f, 0x02, 1, 4, 0, 0, 2, 0x40, 0x01, 0x80})});
  Bytes more = kRecords;
  more.insert(more.end(), kRecords.begin() + 40, kRecords.end());
  EXPECT_EQ(records_of("b.binz"), more);
  store_chunks("none.binz", {});
  EXPECT_TRUE(records_of("none.binz").empty());
}

TEST_F(RecordStoreTest, TakesARecordByItself) {
  {
    RecordStore out(path("a.binz"));
    out.put_record(std::span(kRecords).first<40>());
    out.put_record(std::span(kRecords).last<40>());
    out.finish();
  }
  EXPECT_EQ(records_of("a.binz"), kRecords);
}

TEST_F(RecordStoreTest, RefusesWhatIsNotRight) {
  const struct {
    Bytes packed;
    std::uint32_t records;
    const char* says;
  } cases[] = {{kFetches, 3, "expected a chunk of 3 records, found 2"},
               {kFetches, 1, "expected a chunk of 1 records, found 2"},
               {{0x0f, 0x02, 1, 4, 0, 0}, 0, "expected a chunk of 0 records, found 0"},
               {{0x0f, 0x02, 1, 17, 0, 0, 2}, 0, "more than 16 bytes of data"},
               {{0x00}, 1, "a kind of records that is not defined"},
               {{0x0f, 0x63, 0x00}, 1, "a kind of records that is not defined"},
               {{0x0f, 0x03, 0x00}, 1, "an unknown escape"},
               {{0x1f, 0x01, 0x00}, 1, "an escape with more bits"},
               {{0x0f, 0x63, 0x01}, 1, "a long kind with a short one"}};
  for (const auto& c : cases) {
    store_chunks("a.binz", {with_header({0, c.records, 5, 0, 9, 6}, c.packed)});
    EXPECT_THAT(problem_of("a.binz"), HasSubstr(c.says));
  }
  Bytes kinds;
  for (unsigned n = 0; n < 257; ++n) kinds.insert(kinds.end(), {0x0f, 0x02, 1, 4, 0, 0, 2});
  store_chunks("a.binz", {with_header({0, 0, 5, 0, 9, 6}, kinds)});
  EXPECT_THAT(problem_of("a.binz"), HasSubstr("more than 256 kinds"));
}

TEST_F(RecordStoreTest, KnowsItsEnd) {
  store_chunks("a.binz", {fetches()});
  const std::string whole = load("a.binz");
  for (std::size_t size = kStoredRecordsMagic.size() + 1; size < whole.size(); ++size) {
    store("cut.binz", whole.substr(0, size));
    EXPECT_NE(problem_of("cut.binz"), "") << size;
  }
  store("longer.binz", whole + whole.substr(kStoredRecordsMagic.size()));
  EXPECT_THAT(problem_of("longer.binz"), HasSubstr("expected the end, found more"));
  for (std::size_t at = kStoredRecordsMagic.size(); at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    store("damaged.binz", damaged);
    // A frame of zstd says how much memory it needs, which may be more than it does.
    if (problem_of("damaged.binz").empty()) {
      EXPECT_EQ(records_of("damaged.binz"), kRecords) << at;
    }
  }
}

TEST_F(RecordStoreTest, IsReadAsFarAsItGoesWhereItsWriterWasInterrupted) {
  // Not a byte of what is small is in the file before the end.
  {
    RecordStore out(path("a.binz"));
    for (unsigned n = 0; n < 100000; ++n) out.put(fetches());
  }
  const std::string part = load("a.binz.partial");
  ASSERT_GT(part.size(), 200u);
  for (const std::size_t size : {part.size(), part.size() - 1, part.size() / 2}) {
    store("b.binz.partial", part.substr(0, size));
    const Bytes records = records_of("b.binz.partial");
    EXPECT_EQ(records.size() % 40, 0u);
    ASSERT_GE(records.size(), kRecords.size());
    EXPECT_TRUE(std::equal(kRecords.begin(), kRecords.end(), records.begin()));
  }
}

}  // namespace
}  // namespace citcat
