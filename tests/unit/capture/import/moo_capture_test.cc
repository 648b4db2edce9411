#include "capture/import/moo_capture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "formats/captures/moo.h"
#include "tests/unit/capture/shared_data.h"

namespace citcat {
namespace {

/// Files of all processors that are on this machine.
std::vector<std::string> moo_files() {
  std::vector<std::string> files;
  for (const char* folder : {"moo/80286-real", "moo/386ex-real"}) {
    const std::string path = test::shared_file(folder);
    if (path.empty()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().string().find(".MOO") != std::string::npos)
        files.push_back(entry.path().string());
  }
  return files;
}

class SiliconTests : public testing::Test {
 protected:
  void SetUp() override {
    files_ = moo_files();
    if (files_.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  }
  std::vector<std::string> files_;
};

// What the processor left in memory is what it wrote on the bus: the last write to each byte must
// be the value of the final state, and every changed byte must have been written.
TEST_F(SiliconTests, WritesOnTheBusMakeTheFinalMemory) {
  std::size_t tests = 0, changed = 0;
  for (const std::string& path : files_) {
    const MooFile file = read_moo(path);
    for (const MooTest& test : file.tests) {
      std::map<std::uint32_t, std::uint8_t> written;
      for (const BusTransaction& t : transactions_of(test, file.cpu))
        if (t.op == BusOp::data_write)
          for (std::size_t i = 0; i < t.size; ++i)
            written[t.address.low32() + static_cast<std::uint32_t>(i)] = t.data[i];
      for (const MooByte& byte : test.final.ram) {
        ASSERT_TRUE(written.count(byte.address)) << path << " test " << test.index;
        ASSERT_EQ(written[byte.address], byte.value) << path << " test " << test.index;
        ++changed;
      }
      ++tests;
    }
  }
  EXPECT_GT(tests, 20000u);
  EXPECT_GT(changed, 1000u);
}

TEST_F(SiliconTests, EveryTestEndsInAHalt) {
  for (const std::string& path : files_) {
    const MooFile file = read_moo(path);
    for (const MooTest& test : file.tests) {
      const auto transactions = transactions_of(test, file.cpu);
      ASSERT_FALSE(transactions.empty());
      ASSERT_EQ(transactions.back().op, BusOp::halt) << path << " test " << test.index;
    }
  }
}

TEST_F(SiliconTests, EveryFetchIsAByteOfTheInitialMemoryOrTheInjectedHalt) {
  std::size_t fetched = 0, other = 0;
  for (const std::string& path : files_) {
    const MooFile file = read_moo(path);
    for (const MooTest& test : file.tests) {
      std::map<std::uint32_t, std::uint8_t> memory;
      for (const MooByte& byte : test.initial.ram) memory[byte.address] = byte.value;
      for (const BusTransaction& t : transactions_of(test, file.cpu)) {
        if (t.op != BusOp::code_read) continue;
        for (std::size_t i = 0; i < t.size; ++i) {
          const auto it = memory.find(t.address.low32() + static_cast<std::uint32_t>(i));
          if (it == memory.end()) continue;
          ++fetched;
          if (it->second != t.data[i]) ++other;
        }
      }
    }
  }
  // The rig answers some fetches itself, with a HLT where the instruction went.
  EXPECT_GT(fetched, 100000u);
  EXPECT_LT(other * 100, fetched);
}

TEST_F(SiliconTests, EachTestIsASegmentWithItsState) {
  const auto capture = open_capture({files_.front()}, {});
  EXPECT_EQ(capture->info().format, "moo");
  std::size_t segments = 0;
  do {
    BusTransaction transaction;
    while (capture->next(transaction)) {
    }
    ASSERT_TRUE(capture->initial_state().has_value());
    ++segments;
  } while (capture->next_segment());
  EXPECT_EQ(segments, read_moo(files_.front()).tests.size());
}

}  // namespace
}  // namespace citcat
