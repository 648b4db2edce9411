#include "capture/bus/read_ahead.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <span>

#include "formats/io/error.h"

namespace citcat {
namespace {

/// Segments of so many transactions; the last may end in an error.
class CountingReader final : public CaptureReader {
 public:
  explicit CountingReader(std::vector<std::uint64_t> segments, bool fails = false)
      : segments_(std::move(segments)), fails_(fails) {}

  const CaptureInfo& info() const override { return info_; }
  bool next(BusTransaction& out) override {
    if (in_segment_ == segments_[segment_]) {
      if (fails_ && segment_ + 1 == segments_.size())
        throw FormatError("counted", index_, "enough");
      info_.files.push_back({"segment", in_segment_, ""});
      return false;
    }
    out = {};
    out.index = index_++;
    ++in_segment_;
    info_.bus.line_bytes = out.index < 70'000 ? 16 : 32;
    return true;
  }
  bool next_segment() override {
    if (segment_ + 1 == segments_.size()) return false;
    ++segment_;
    in_segment_ = 0;
    return true;
  }
  std::optional<CpuState> initial_state() const override {
    CpuState state;
    state.eip = static_cast<std::uint32_t>(segment_);
    return state;
  }

 private:
  std::vector<std::uint64_t> segments_;
  bool fails_;
  CaptureInfo info_;
  std::size_t segment_ = 0;
  std::uint64_t in_segment_ = 0, index_ = 0;
};

/// Reads a segment and returns how many transactions it has, if they come in order.
std::uint64_t read_segment(ReadAhead& ahead, std::uint64_t first) {
  std::uint64_t index = first;
  for (auto block = ahead.next(); !block.empty(); block = ahead.next()) {
    for (const BusTransaction& t : block) {
      if (t.index != index++) ADD_FAILURE() << "transaction " << t.index << " out of order";
    }
    const std::uint32_t line = block.back().index < 70'000 ? 16 : 32;
    EXPECT_EQ(ahead.info().bus.line_bytes, line) << "at " << block.back().index;
  }
  return index - first;
}

TEST(ReadAhead, GivesEveryTransactionOfEverySegmentInOrder) {
  const std::vector<std::uint64_t> segments{10, 300'001, 0, 65'536, 65'537, 128};
  CountingReader reader(segments);
  ReadAhead ahead(reader);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    EXPECT_EQ(ahead.initial_state()->eip, i);
    EXPECT_EQ(read_segment(ahead, first), segments[i]);
    EXPECT_TRUE(ahead.next().empty());
    EXPECT_EQ(ahead.info().files.size(), i + 1);
    EXPECT_EQ(ahead.next_segment(), i + 1 < segments.size());
    first += segments[i];
  }
}

TEST(ReadAhead, ThrowsWhatTheReaderThrowsBehindTheTransactionsBeforeIt) {
  for (const std::uint64_t count : {0, 100, 65'536, 66'560, 200'000}) {
    CountingReader reader({count}, true);
    ReadAhead ahead(reader);
    std::uint64_t seen = 0;
    EXPECT_THROW(
        for (auto block = ahead.next(); !block.empty(); block = ahead.next()) seen += block.size(),
        FormatError);
    EXPECT_EQ(seen, count);
  }
}

TEST(ReadAhead, CanBeGivenUpAnywhere) {
  for (const std::uint64_t enough : {1, 65'536, 65'537, 100'000}) {
    CountingReader reader({1'000'000});
    ReadAhead ahead(reader);
    for (std::uint64_t seen = 0; seen < enough;) seen += ahead.next().size();
  }
}

}  // namespace
}  // namespace citcat
