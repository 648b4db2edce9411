// Evidence that is taken in on a second thread is what it is on one, with what memory held.

#include "replay/captured/evidence_ahead.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "formats/io/error.h"
#include "unit/replay/verify/bus_transactions.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kLineCount = 64, kLineBytes = 32, kBase = 0x10ff0;  // across a page's end

/// Reads of lines, one after the other, and now and then a write of a few bytes of one.
std::vector<BusTransaction> line_traffic(std::size_t count) {
  std::vector<BusTransaction> all;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint32_t>(kBase / kLineBytes * kLineBytes +
                                               i * 7 % kLineCount * kLineBytes);
    const auto value = static_cast<std::uint8_t>(i >> 3);
    BusTransaction t = i % 5 == 4 ? counted(BusOp::data_write, at + 8, {value, 0x55}, i)
                                  : counted(i % 3 == 0 ? BusOp::code_read : BusOp::data_read, at,
                                            kLineBytes, i, kLine);
    t.index = i;
    all.push_back(t);
  }
  return all;
}

/// Begins with two thirds of the bytes known.
MemoryImage image_of_thirds() {
  MemoryImage image;
  for (std::uint32_t a = 0x10000; a < 0x13000; ++a) {
    if (a % 3 != 0) image.set(PhysAddr{a}, static_cast<std::uint8_t>(a * 5));
  }
  return image;
}

/// Memory as the traffic shows it, a byte at a time.
class MemoryShown {
 public:
  explicit MemoryShown(const MemoryImage& image) : image_(image) {}
  void write(const BusTransaction& t) {
    for (std::uint32_t i = 0; i < t.size; ++i) written_[t.address.value + i] = t.data[i];
  }
  void expect_in(const BusTransaction& t, std::uint32_t known) const {
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const auto at = written_.find(t.address.value + i);
      const auto held =
          at != written_.end() ? std::optional(at->second) : image_.byte(t.address.plus32(i));
      ASSERT_EQ((known >> i & 1) != 0, held.has_value()) << t.index << " byte " << i;
      ASSERT_EQ(t.data[i], held.value_or(t.data[i])) << t.index << " byte " << i;
    }
  }

 private:
  const MemoryImage& image_;
  std::map<std::uint64_t, std::uint8_t> written_;
};

class EvidenceAheadTest : public testing::TestWithParam<std::size_t> {
 protected:
  std::unique_ptr<EvidenceAhead> ahead_of(std::vector<BusTransaction> list,
                                          std::uint64_t passed_over = 0) {
    return std::make_unique<EvidenceAhead>(
        std::make_unique<ListedEvidence>(std::move(list)), image_, schedule_,
        EvidenceAhead::Options{.joins_lines = true, .passed_over = passed_over});
  }
  MemoryImage image_ = image_of_thirds();
  Schedule schedule_;
};

TEST_P(EvidenceAheadTest, PassesOverTheFirstWithWhatTheyWrite) {
  const auto all = line_traffic(GetParam());
  for (const std::size_t passed : {std::size_t{1}, all.size() / 2, all.size()}) {
    if (passed > all.size()) continue;
    const auto whole = ahead_of(all), rest = ahead_of(all, passed);
    BusTransaction expected, found;
    for (std::size_t i = 0; i < passed; ++i) whole->next_line(expected);
    EXPECT_EQ(rest->given(), passed);
    while (whole->next_line(expected) != 0) {
      ASSERT_NE(rest->next_line(found), 0u);
      ASSERT_EQ(found.index, expected.index);
      ASSERT_EQ(found.data, expected.data);
      ASSERT_EQ(rest->context().known, whole->context().known);
      ASSERT_EQ(rest->context().unwritten, whole->context().unwritten);
      ASSERT_EQ(rest->context().repeated, whole->context().repeated);
    }
    EXPECT_EQ(rest->next_line(found), 0u);
    EXPECT_EQ(rest->given(), all.size());
  }
}

TEST_P(EvidenceAheadTest, GivesEachTransactionWithWhatMemoryHeldThere) {
  const auto all = line_traffic(GetParam());
  const auto ahead = ahead_of(all);
  MemoryShown shown(image_);
  BusTransaction t;
  for (const BusTransaction& expected : all) {
    ASSERT_EQ(ahead->next_line(t), 2u);
    ASSERT_EQ(t.index, expected.index);
    ASSERT_EQ(t.address, expected.address);
    EXPECT_FALSE(ahead->context().repeated);
    if (t.op == BusOp::data_write) {
      EXPECT_EQ(t.data, expected.data);
      shown.write(t);
    } else {
      shown.expect_in(t, ahead->context().known);
    }
  }
  EXPECT_EQ(ahead->next_line(t), 0u);
  EXPECT_EQ(ahead->next_line(t), 0u) << "and stays at the end";
}

TEST_P(EvidenceAheadTest, GivesWhatComesBeforeDamageAndThenSaysWhatItIs) {
  class Damaged final : public EvidenceReader {
   public:
    explicit Damaged(std::vector<BusTransaction> list) : list_(std::move(list)) {}
    bool next(BusTransaction& out) override {
      if (!list_.next(out)) throw FormatError("a.citcat", 7, "expected evidence, found none");
      return true;
    }

   private:
    ListedEvidence list_;
  };
  const auto all = line_traffic(GetParam());
  EvidenceAhead ahead(std::make_unique<Damaged>(all), image_, schedule_, {});
  BusTransaction t;
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(ahead.next(t)) << i;
  EXPECT_THROW(ahead.next(t), FormatError);
  EXPECT_THROW(ahead.next(t), FormatError) << "as often as it is asked";
}

TEST_P(EvidenceAheadTest, KnowsWhatWasFetchedBeforeAPartAndWhatMemoryHoldsAtTheEnd) {
  const auto all = line_traffic(GetParam());
  const std::uint64_t from = all.size() / 2;
  EvidenceAhead ahead(std::make_unique<ListedEvidence>(all), image_, schedule_,
                      {.on_a_thread = false, .from = from});
  BusTransaction given;
  for (std::uint64_t i = from; i < all.size(); ++i) {
    ASSERT_TRUE(ahead.next(given));
    ASSERT_EQ(given.index, i);
  }
  EXPECT_FALSE(ahead.next(given));
  MemoryImage memory = image_.clone();
  std::vector<std::uint64_t> fetched, told;
  for (const BusTransaction& t : all) {
    if (t.op == BusOp::data_write) memory.set(t.address, t.bytes());
    if (t.op == BusOp::code_read && t.index < from) fetched.push_back(t.index);
  }
  if (fetched.size() > EvidenceAhead::kFetchesKept) {
    fetched.erase(fetched.begin(), fetched.end() - EvidenceAhead::kFetchesKept);
  }
  for (const BusTransaction& t : ahead.fetched_before()) told.push_back(t.index);
  EXPECT_EQ(told, fetched);
  const MemoryImage& shown = ahead.memory_at_end();
  for (std::uint32_t a = 0x10000; a < 0x14000; ++a) {
    ASSERT_EQ(shown.byte(PhysAddr{a}), memory.byte(PhysAddr{a})) << a;
  }
}

TEST_P(EvidenceAheadTest, MayBeLeftAnywhere) {
  for (const std::size_t part : {1, 2, 3}) {
    const auto ahead = ahead_of(line_traffic(GetParam()));
    BusTransaction t;
    for (std::size_t i = 0; i < GetParam() * part / 4; ++i) ASSERT_NE(ahead->next_line(t), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(OnOneThreadAndOnTwo, EvidenceAheadTest,
                         testing::Values(0, 1, 63, 64, 65, 4096, 4097, 5000, 20000),
                         testing::PrintToStringParamName());

TEST_F(EvidenceAheadTest, TellsOfReadsWhetherTheirFrameWasWrittenBefore) {
  std::vector<BusTransaction> list{counted(BusOp::code_read, 0x10010, 4, 0),
                                   counted(BusOp::data_write, 0x10ffe, {1, 2, 3, 4}, 1),
                                   counted(BusOp::code_read, 0x10020, 4, 2),
                                   counted(BusOp::code_read, 0x11020, 4, 3),
                                   counted(BusOp::code_read, 0x12020, 4, 4)};
  const auto ahead = ahead_of(std::move(list));
  BusTransaction t;
  std::vector<bool> unwritten;
  while (ahead->next_line(t) != 0) {
    if (t.op == BusOp::code_read) unwritten.push_back(ahead->context().unwritten);
  }
  EXPECT_EQ(unwritten, (std::vector{true, false, false, true})) << "a write into two frames";
}

TEST_F(EvidenceAheadTest, TellsWhatStandsTwice) {
  const BusTransaction fill = counted(BusOp::data_read, 0x10020, kLineBytes, 3, kLine);
  const auto ahead = ahead_of({fill, fill});
  BusTransaction t;
  ahead->next_line(t);
  EXPECT_FALSE(ahead->context().repeated);
  ahead->next_line(t);
  EXPECT_TRUE(ahead->context().repeated);
}

TEST_F(EvidenceAheadTest, OtherMastersWriteBeforeTheReadThatShowedIt) {
  ExternalWrite write;
  write.address = PhysAddr{0x10021};
  write.data = {0xaa, 0xbb};
  write.transaction = 1;
  schedule_.external_writes.push_back(write);
  std::vector<BusTransaction> list{counted(BusOp::data_read, 0x10020, kLineBytes, 0, kLine),
                                   counted(BusOp::data_read, 0x10020, kLineBytes, 1, kLine)};
  list[1].index = 1;
  const auto ahead = ahead_of(std::move(list));
  BusTransaction t;
  ahead->next_line(t);
  EXPECT_EQ(t.data[1], static_cast<std::uint8_t>(0x10021 * 5));
  ahead->next_line(t);
  EXPECT_EQ(t.data[1], 0xaa);
  EXPECT_EQ(t.data[2], 0xbb);
}

}  // namespace
}  // namespace citcat::test
