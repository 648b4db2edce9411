#include "cli/record/interrupt_log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace citcat {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(InterruptLogFile, HoldsNoMoreThanItsEndHoweverMuchIsWritten) {
  InterruptLogFile log;
  const int writer = open(log.path().c_str(), O_WRONLY);
  ASSERT_GE(writer, 0);
  // As the monitor makes it, which maps it ahead.
  ASSERT_EQ(ftruncate(log.descriptor(), off_t{1} << 32), 0);
  const std::string line(1023, 'x');
  std::uint64_t most = 0;
  for (int n = 0; n < 64 * 1024; ++n) {
    ASSERT_EQ(write(writer, (line + "\n").data(), 1024), 1024);
    if (n % 1024 != 0) continue;
    log.trim();
    most = std::max(most, log.held());
  }
  EXPECT_LE(most, 4 * kMiB) << "of 64 MiB";
  std::string end(4096, ' ');
  ASSERT_EQ(pread(log.descriptor(), end.data(), end.size(), 63 * kMiB),
            static_cast<ssize_t>(end.size()));
  EXPECT_EQ(end[0], 'x') << "the last MiB stays";
  close(writer);
}

}  // namespace
}  // namespace citcat
