// The recording of Linux, as a user walks it: protected mode with paging, the driver's state dump,
// interrupts, page faults, and write-back caches in front of the bus.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "golden/process.h"
#include "golden/samples.h"

namespace citcat::testing {
namespace {

class LinuxSample : public ::testing::Test {
 protected:
  nlohmann::json run_json(const std::vector<std::string>& arguments) const {
    const ProcessResult result = run_citcat(arguments, folder_.path());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }
  nlohmann::json import_it() const {
    return run_json(
        {"import", kLinuxStart, "--internal", kLinuxStartValues, "-o", "linux.citcat", "--json"});
  }

  TemporaryFolder folder_;
};

TEST_F(LinuxSample, BeginsWithTheDriversDump) {
  const auto imported = import_it();
  EXPECT_EQ(imported.at("cpu"), "p6");
  EXPECT_EQ(imported.at("interrupts"), 2);
  const auto info = run_json({"info", "linux.citcat", "--json"});
  EXPECT_EQ(info.at("bus").at("cache"), "write-back");
  // An SMI alone shows where the processor saves its state.
  EXPECT_EQ(info.at("unknown_registers"), nlohmann::json({"smbase"}));
}

TEST_F(LinuxSample, CacheThatIsEmptiedEveryNInstructionsIsANewOneForEachN) {
  import_it();
  const auto fills = [&](const std::vector<std::string>& more) {
    std::vector<std::string> line = {"cache", "linux.citcat", "--json", "-q"};
    line.insert(line.end(), more.begin(), more.end());
    const auto json = run_json(line);
    return json.at("code").at("fills").get<int>() + json.at("data").at("fills").get<int>();
  };
  int each = 0;
  for (int from = 0; from < 149957; from += 50000) {
    each += fills({"--from", std::to_string(from), "--to", std::to_string(from + 50000)});
  }
  EXPECT_EQ(fills({"flush=50000"}), each);
  EXPECT_LT(fills({}), each);
}

/// The fills of each shape of a sweep beside those of a cache of that shape alone, in one run.
TEST_F(LinuxSample, CachesOfManyShapesFillWhatEachFillsAlone) {
  import_it();
  for (const std::string kind :
       {"allocate", "allocate,split", "allocate,writes=back", "writes=through"}) {
    struct Shape {
      int line, bytes, ways;
    };
    std::vector<std::string> ask = {"analyze", "linux.citcat",
                                    "--json",  "-q",
                                    "--tool",  "cache:" + kind + ",sweep=bytes+ways+line,most=32k"};
    std::vector<std::pair<Shape, std::string>> alone;
    for (const Shape shape : {Shape{16, 1024, 1}, Shape{16, 32768, 8}, Shape{32, 8192, 4},
                              Shape{64, 2048, 2}, Shape{128, 1024, 8}, Shape{128, 16384, 1}}) {
      const std::string tool = "cache:" + kind + ",line=" + std::to_string(shape.line) +
                               ",bytes=" + std::to_string(shape.bytes) +
                               ",ways=" + std::to_string(shape.ways);
      alone.emplace_back(shape, tool);
      ask.insert(ask.end(), {"--tool", tool});
    }
    const auto tools = run_json(ask).at("tools");
    const auto& rows = tools.at(ask[5]).at("shapes");
    EXPECT_EQ(rows.size(), 4U * 6 * 4);
    for (const auto& [shape, tool] : alone) {
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const nlohmann::json& r) {
        return r.at("line") == shape.line && r.at("bytes") == shape.bytes &&
               r.at("ways") == shape.ways;
      });
      ASSERT_NE(row, rows.end()) << tool;
      const auto& one = tools.at(tool);
      EXPECT_EQ(row->at("code_fills"), one.at("code").at("fills")) << tool;
      EXPECT_EQ(row->at("data_fills"), one.at("data").at("fills")) << tool;
      EXPECT_EQ(row->at("user_code_fills"), one.at("user").at("code").at("fills")) << tool;
      EXPECT_EQ(row->at("user_data_fills"), one.at("user").at("data").at("fills")) << tool;
    }
    if (!rows[0].contains("first")) continue;
    for (const auto& row : rows) {
      double causes = 0;
      for (const char* const cause : {"first", "taken_away", "capacity", "conflict"}) {
        causes += row.at(cause).get<double>();
      }
      EXPECT_EQ(causes, row.at("code_fills").get<double>() + row.at("data_fills").get<double>());
    }
  }
}

TEST_F(LinuxSample, ReplaysToTheSameWriteBacksAndPortAccesses) {
  import_it();
  const auto verdict = run_json({"verify", "linux.citcat", "--json"});
  EXPECT_EQ(verdict.at("verdict"), "match");
  EXPECT_EQ(verdict.at("interrupts"), 2);
  EXPECT_EQ(verdict.at("exceptions"), 9);
  EXPECT_EQ(verdict.at("write_backs").at("equal"), 4670);
  EXPECT_EQ(verdict.at("io_writes").at("equal"), 6);
}

TEST_F(LinuxSample, NothingOfItHasToBeAdoptedFromTheBus) {
  import_it();
  EXPECT_EQ(run_json({"verify", "linux.citcat", "--json", "--strict"}).at("verdict"), "match");
}

/// The monitor's TLB is another than the model's: page tables are read at other times.
TEST_F(LinuxSample, AgreesWithAModelOfThePentiumsCachesButForPageTables) {
  import_it();
  const auto cache = run_json({"verify", "linux.citcat", "--json", "--cache"}).at("cache");
  EXPECT_EQ(cache.at("model"), "pentium");
  const auto share = [&](const char* kind) {
    return cache.at(kind).at("agree").get<double>() / cache.at(kind).at("captured").get<double>();
  };
  EXPECT_GT(share("fills"), 0.97);
  EXPECT_GT(share("write_backs"), 0.8);
}

}  // namespace
}  // namespace citcat::testing
