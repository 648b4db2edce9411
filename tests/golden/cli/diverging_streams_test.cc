// A stream of a run that diverges: what is sure, once, to its end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/io/input.h"
#include "golden/citcat_test.h"
#include "golden/samples.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

/// The start of Linux, of which late in the run a line is written back with one byte changed.
class DivergingStreams : public CitcatTest {
 protected:
  static constexpr std::size_t kRecordBytes = 40, kTypeAt = 20, kDataAt = 24;
  static constexpr char kDataWrite = 3;

  void SetUp() override {
    made_once([this] {
      std::string records = unpacked(kLinuxStart);
      std::size_t at = records.size() / kRecordBytes * 3 / 5 * kRecordBytes;
      while (at < records.size() && records[at + kTypeAt] != kDataWrite) at += kRecordBytes;
      ASSERT_LT(at, records.size());
      good({"import", kLinuxStart, "--internal", kLinuxStartValues, "-o", "good.citcat"});
      records[at + kDataAt] ^= 0x55;
      write_file(file("wrong.bin"), records);
      good({"import", "wrong.bin", "--internal", kLinuxStartValues, "-o", "wrong.citcat"});
    });
    const ProcessResult verified = run({"verify", "wrong.citcat", "--json"});
    ASSERT_EQ(verified.exit_code, 1) << verified.err;
    end_ = nlohmann::json::parse(verified.out).at("divergence").at("position");
    ASSERT_GT(end_, 10000u);
  }
  static std::string unpacked(const std::string& path) {
    InputStream in(path);
    std::string all;
    for (std::array<std::uint8_t, 4096> piece; const std::size_t size = in.read(piece);)
      all.append(reinterpret_cast<const char*>(piece.data()), size);
    return all;
  }
  /// What the run as it really was gives up to an instruction.
  std::string whole(const std::string& format, std::uint64_t to) const {
    return good({"cat", "good.citcat", "--format", format, "--to", std::to_string(to)});
  }

  std::uint64_t end_ = 0;
};

TEST_F(DivergingStreams, AsTextEndWithTheLastInstructionThatIsSure) {
  for (const std::string format : {"text", "csv", "json"}) {
    const ProcessResult stream = run({"cat", "wrong.citcat", "--format", format});
    EXPECT_EQ(stream.exit_code, 1);
    EXPECT_THAT(stream.err, HasSubstr("diverged"));
    EXPECT_TRUE(stream.out == whole(format, end_)) << format << ": " << stream.out.size();
  }
}

TEST_F(DivergingStreams, InOtherFormatsEndThereTooAndDoNotBeginAnew) {
  for (const std::string format : {"lackey", "din", "tenet", "champsim"}) {
    const ProcessResult stream = run({"cat", "wrong.citcat", "--format", format});
    EXPECT_EQ(stream.exit_code, 1);
    // An instruction is told with what follows it.
    EXPECT_TRUE(whole(format, end_).starts_with(stream.out)) << format << ": " << stream.out.size();
    EXPECT_GE(stream.out.size(), whole(format, end_ - 2).size()) << format;
    EXPECT_EQ(run({"replay", "wrong.citcat", "--format", format, "-o", "file"}).exit_code, 1);
    EXPECT_TRUE(read_file(file("file.partial")) == stream.out) << format;
  }
}

TEST_F(DivergingStreams, HaveNoRegistersAndNoMemoryBeyondIt) {
  const std::string beyond = std::to_string(end_ + 50);
  const ProcessResult registers = run(
      {"sql", "wrong.citcat", "--json",
       "select position from registers where name = 'eip' and position in (10, " + beyond + ")"});
  EXPECT_EQ(registers.exit_code, 1);
  EXPECT_THAT(registers.err, HasSubstr("diverged"));
  EXPECT_EQ(nlohmann::json::parse(registers.out), nlohmann::json::parse(R"([{"position": 10}])"));
  const ProcessResult memory =
      run({"sql", "wrong.citcat", "--json", "select value from memory(" + beyond + ", 0, 1)"});
  EXPECT_EQ(memory.exit_code, 1);
  EXPECT_EQ(memory.out, "[]\n");
}

}  // namespace
}  // namespace citcat::testing
