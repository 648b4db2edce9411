#include "events/capture_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace citcat {
namespace {

TEST(CaptureTime, IsANumberAndItsUnit) {
  EXPECT_DOUBLE_EQ(parse_capture_time("1.5ms").value(), 0.0015);
  EXPECT_DOUBLE_EQ(parse_capture_time("2s").value(), 2);
  EXPECT_DOUBLE_EQ(parse_capture_time("0.25us").value(), 2.5e-7);
  EXPECT_DOUBLE_EQ(parse_capture_time("750ns").value(), 7.5e-7);
}

TEST(CaptureTime, IsNothingElse) {
  for (const char* text :
       {"", "ms", "15", "1.5 ms", "-1ms", "1.5min", "1e3s", "nans", "infs", "1.5msx"})
    EXPECT_FALSE(parse_capture_time(text)) << text;
}

TEST(CaptureTime, IsTheFirstClockAtOrAfterIt) {
  EXPECT_EQ(clock_at(0, 1e7), 0u);
  EXPECT_EQ(clock_at(0.0015, 1e7), 15000u);
  EXPECT_EQ(clock_at(0.00150001, 1e7), 15001u);
  EXPECT_EQ(clock_at(1e30, 1e7), std::numeric_limits<std::uint64_t>::max());
}

TEST(CaptureTime, IsPrintedAsItIsRead) {
  EXPECT_EQ(capture_time_text(15000, 1e7), "0.001500000s");
  EXPECT_DOUBLE_EQ(parse_capture_time(capture_time_text(15000, 1e7)).value(), 0.0015);
}

}  // namespace
}  // namespace citcat
