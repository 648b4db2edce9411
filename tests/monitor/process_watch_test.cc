// Programs that begin and end, by registers and a stack that the test makes.

#include "monitor/options/process_watch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

class ProcessWatchTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kStack = 0xbffff000, kPath = 0xbffffff0, kName = 0xb0000000;

  ProcessWatch watch(const std::string& trigger) {
    return {*parse_trigger(trigger), registers_, [this](std::uint32_t at, auto bytes) {
              for (std::size_t k = 0; k < bytes.size(); ++k) {
                const auto found = memory_.find(at + static_cast<std::uint32_t>(k));
                if (found == memory_.end()) return false;
                bytes[k] = found->second;
              }
              return true;
            }};
  }
  void put(std::uint32_t at, std::uint32_t value) {
    for (unsigned k = 0; k < 4; ++k) memory_[at + k] = static_cast<std::uint8_t>(value >> 8 * k);
  }
  void put(std::uint32_t at, const std::string& text) {
    for (std::size_t k = 0; k <= text.size(); ++k)
      memory_[at + static_cast<std::uint32_t>(k)] = static_cast<std::uint8_t>(text.c_str()[k]);
  }
  /// A program begins, with two arguments and one variable.
  void execute(const std::string& path, std::uint32_t cr3) {
    const std::uint32_t words[] = {2, kName, kName, 0, kName, 0, 6, 4096, 31, kPath, 0, 0};
    for (std::uint32_t n = 0; n < std::size(words); ++n) put(kStack + 4 * n, words[n]);
    put(kPath, path);
    std::fill(std::begin(registers_.state_.gpr), std::end(registers_.state_.gpr), 0);
    registers_.state_.gpr[4] = kStack;
    registers_.state_.cr3 = cr3;
  }
  void call(std::uint32_t number, std::uint32_t first = 0, std::uint32_t second = 0) {
    registers_.state_.gpr[0] = number;
    registers_.state_.gpr[3] = first;
    registers_.state_.gpr[1] = second;
  }

  FixedRegisters registers_;
  std::map<std::uint32_t, std::uint8_t> memory_;
};

TEST_F(ProcessWatchTest, AProgramBeginsWithZerosAndItsPathOnTheStack) {
  ProcessWatch watched = watch("process:ls");
  execute("/bin/cat", 0x1000);
  EXPECT_FALSE(watched.block(CodeSize::bits32));
  execute("/bin/ls", 0x2000);
  registers_.state_.gpr[5] = 1;
  EXPECT_FALSE(watched.block(CodeSize::bits32)) << "it runs already";
  registers_.state_.gpr[5] = 0;
  EXPECT_TRUE(watched.block(CodeSize::bits32));
}

TEST_F(ProcessWatchTest, ANameWithAFolderIsAWholePath) {
  ProcessWatch watched = watch("process:/usr/bin/ls");
  execute("/bin/ls", 0x1000);
  EXPECT_FALSE(watched.block(CodeSize::bits32));
  execute("/usr/bin/ls", 0x1000);
  EXPECT_TRUE(watched.block(CodeSize::bits32));
}

TEST_F(ProcessWatchTest, AStackThatIsNotThereNamesNoProgram) {
  ProcessWatch watched = watch("process:ls");
  execute("/bin/ls", 0x1000);
  registers_.state_.gpr[4] = 0x10;
  EXPECT_FALSE(watched.block(CodeSize::bits32));
}

TEST_F(ProcessWatchTest, AProgramMayGiveItselfAName) {
  ProcessWatch watched = watch("process:md5sum");
  execute("/proc/self/exe", 0x1000);
  EXPECT_FALSE(watched.block(CodeSize::bits32));
  put(kName, "md5sum");
  call(172, 15, kName);
  EXPECT_TRUE(watched.call(CodeSize::bits32));
}

TEST_F(ProcessWatchTest, AnEndIsThatOfAProgramThatHasTheName) {
  ProcessWatch watched = watch("exit:ls");
  execute("/bin/ls", 0x1000);
  EXPECT_FALSE(watched.block(CodeSize::bits32));
  call(252);
  registers_.state_.cr3 = 0x2000;
  EXPECT_FALSE(watched.call(CodeSize::bits32)) << "another one";
  registers_.state_.cr3 = 0x1000;
  call(4);
  EXPECT_FALSE(watched.call(CodeSize::bits32)) << "write";
  call(252);
  EXPECT_TRUE(watched.call(CodeSize::bits32));
}

TEST_F(ProcessWatchTest, ProgramsOf64BitsHaveWordsOfEightBytesAndOtherCalls) {
  ProcessWatch watched = watch("exit:ls");
  execute("/bin/ls", 0x1000);
  const std::uint32_t words[] = {1, kName, 0, kName, 0, 31, kPath, 0, 0};
  for (std::uint32_t n = 0; n < std::size(words); ++n) {
    put(kStack + 8 * n, words[n]);
    put(kStack + 8 * n + 4, 0u);
  }
  registers_.state_.gpr[15] = 1;
  EXPECT_FALSE(watched.block(CodeSize::bits64));
  call(231);
  EXPECT_FALSE(watched.call(CodeSize::bits64)) << "it ran already";
  registers_.state_.gpr[0] = registers_.state_.gpr[15] = 0;
  EXPECT_FALSE(watched.block(CodeSize::bits64));
  call(60);
  EXPECT_TRUE(watched.call(CodeSize::bits64));
}

TEST_F(ProcessWatchTest, PageTablesUsedAgainHaveTheNameOfTheirNewProgram) {
  ProcessWatch watched = watch("exit:ls");
  execute("/bin/ls", 0x1000);
  EXPECT_FALSE(watched.block(CodeSize::bits32));
  execute("/bin/cat", 0x1000);
  EXPECT_FALSE(watched.block(CodeSize::bits32));
  call(252);
  EXPECT_FALSE(watched.call(CodeSize::bits32));
}

}  // namespace
}  // namespace citcat::monitor
