#include "replay/engine/process_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace citcat {
namespace {

TEST(ProcessMemory, BytesMayLieInTwoMappingsThatTouch) {
  const std::vector<HostMapping> mappings = {{0x1000, 0x2000}, {0x2000, 0x4000}, {0x5000, 0x6000}};
  EXPECT_TRUE(lies_in(mappings, 0x1000, 0x3000));
  EXPECT_TRUE(lies_in(mappings, 0x1fff, 2));
  EXPECT_TRUE(lies_in(mappings, 0x5000, 0x1000));
  EXPECT_FALSE(lies_in(mappings, 0x3fff, 2));
  EXPECT_FALSE(lies_in(mappings, 0x0fff, 2));
  EXPECT_FALSE(lies_in(mappings, 0x4000, 0x1001));
}

TEST(ProcessMemory, MappingsThatDoNotTouchStayApart) {
  const std::vector<HostMapping> mappings = {{0x1000, 0x2000}, {0x2000, 0x4000}, {0x5000, 0x6000}};
  EXPECT_FALSE(lies_in(mappings, 0x3000, 0x1001));
  EXPECT_FALSE(lies_in(mappings, 0x4000, 1));
  EXPECT_FALSE(lies_in(mappings, 0x3000, 0x3000));
  EXPECT_FALSE(lies_in({}, 0x1000, 1));
}

// The case that asks for it, as the kernel makes it: what a child adds to its parent's heap.
TEST(ProcessMemory, HeapOfAForkedProcessIsOneRange) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "allocations do not lie in the process's heap under the address sanitizer";
#endif
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    char* const end = static_cast<char*>(sbrk(1 << 20));
    if (end == reinterpret_cast<char*>(-1)) _exit(2);
    end[0] = end[-1] = 1;
    const auto at = reinterpret_cast<std::uintptr_t>(end) - 1;
    _exit(lies_in(host_mappings("rw"), at, 2) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "the heap of this process does not grow";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace citcat
