// Whatever is known of a recording, and however its run is replayed, tools find the same: compared
// with the evidence, verified before, not compared, from checkpoints, or by several processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "golden/citcat_test.h"
#include "golden/flat_machine.h"

namespace citcat::testing {
namespace {

using Json = nlohmann::json;

/// Flat 32-bit code without pages at 5000h, and a stack below 8000h.
std::string flat_state() {
  return flat_machine({{"cpu", "486"}, {"ram_bytes", 65536}}, {{"esp", 32752},
                                                               {"idtr.base", 24576},
                                                               {"idtr.limit", 2047},
                                                               {"gdtr.base", 28672},
                                                               {"gdtr.limit", 23}});
}

/// A line of 16 bytes that the cache fetched; what `bytes` does not say is 0.
std::string line_fill(const char* kind, const char* address, std::string bytes) {
  bytes.resize(32, '0');
  return std::string(",,0,") + kind + "," + address + ",16,L,0," + bytes + "\n";
}

class AnalysisPaths : public CitcatTest {
 protected:
  /// Blocks of the machine run through several of these names; one is called.
  void import_named_code() const {
    write_file(file("state.json"), flat_state());
    write_file(file("System.map"),
               "00005000 T start\n00005005 T one\n00005006 T two\n00005007 T three\n"
               "0000500a T four\n00005012 T f\n00005013 T g\n00005014 T h\n");
    // start: mov ecx,50; one: nop; two: nop; three: dec ecx; jnz one; four: call f; hlt
    // f: nop; g: nop; h: ret
    write_file(file("c.csv"),
               "#citcat-capture 1 cpu=486 cache=write-back line=16 bus=4 mask=ffffffff\n"
               "icount,rep,clk,type,addr,size,flags,burst,data\n" +
                   line_fill("CODE_RD", "5000",
                             "b932000000909049"
                             "75fbe803000000f4") +
                   line_fill("CODE_RD", "5010", "90909090c3") + line_fill("MEM_RD", "7fe0", "") +
                   ",,0,HALT,0,0,-,0,\n");
    good({"import", "c.csv", "--initial-state", "state.json", "--symbols", "System.map", "-o",
          "fresh.citcat", "-q"});
  }
  void copy(const char* from, const char* to) const {
    std::filesystem::copy_file(file(from), file(to));
  }
  /// Recordings of the same run, each with what is to be given with it.
  std::vector<std::pair<std::string, std::string>> variants() const {
    copy("fresh.citcat", "verified.citcat");
    good({"cat", "verified.citcat"});
    copy("fresh.citcat", "checked.citcat");
    good({"checkpoint", "checked.citcat", "--every", "40"});
    return {{"fresh.citcat", ""},
            {"fresh.citcat", "--unchecked"},
            {"verified.citcat", ""},
            {"verified.citcat", "--unchecked"},
            {"verified.citcat", "--from-start"},
            {"checked.citcat", ""},
            {"checked.citcat", "--jobs=2"}};
  }
  Json analysis(const std::string& recording, const std::string& option,
                const std::vector<std::string>& tools) const {
    std::vector<std::string> command = {"analyze", recording, "--json"};
    if (option.starts_with("--jobs")) {
      command.insert(command.end(), {"--jobs", option.substr(7)});
    } else if (!option.empty()) {
      command.push_back(option);
    }
    for (const std::string& tool : tools) command.insert(command.end(), {"--tool", tool});
    return Json::parse(good(command));
  }
};

/// What each procedure executed, from the addresses of a listing.
std::map<std::string, int> own_count(const std::string& listing) {
  const std::map<int, std::string> begins = {{0x5000, "start"}, {0x5005, "one"},  {0x5006, "two"},
                                             {0x5007, "three"}, {0x500a, "four"}, {0x5012, "f"},
                                             {0x5013, "g"},     {0x5014, "h"}};
  std::map<std::string, int> count;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    const Json step = Json::parse(line);
    if (!step.contains("eip")) continue;
    const int at = std::stoi(step["eip"].get<std::string>(), nullptr, 16);
    ++count[std::prev(begins.upper_bound(at))->second];
  }
  return count;
}

TEST_F(AnalysisPaths, GiveEachProcedureItsOwnInstructions) {
  import_named_code();
  const std::map<std::string, int> right = {{"start", 1}, {"one", 50}, {"two", 50}, {"three", 100},
                                            {"four", 1},  {"f", 1},    {"g", 1},    {"h", 1}};
  copy("fresh.citcat", "listed.citcat");
  EXPECT_EQ(own_count(good({"cat", "listed.citcat", "--format", "json"})), right);
  for (const auto& [recording, option] : variants()) {
    SCOPED_TRACE(recording + " " + option);
    std::map<std::string, int> func, tree, folded;
    const Json tools = analysis(recording, option, {"func", "tree", "calls"})["tools"];
    for (const Json& row : tools["func"]["procedures_by_instructions"])
      func[row["procedure"]] += row["own"].get<int>();
    for (const Json& row : tools["tree"]["tree"]) tree[row["procedure"]] += row["own"].get<int>();
    EXPECT_EQ(func, right);
    EXPECT_EQ(tree, right);
    std::filesystem::remove(file("r.folded"));
    std::vector<std::string> command = {"replay", recording, "-o", "r.folded"};
    if (option == "--unchecked") command.push_back(option);
    good(command);
    std::istringstream lines(read_file(file("r.folded")));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t name = line.rfind(';') + 1, blank = line.rfind(' ');
      folded[line.substr(name, blank - name)] += std::stoi(line.substr(blank));
    }
    EXPECT_EQ(folded, right);
  }
}

TEST_F(AnalysisPaths, GiveTheSameFigures) {
  import_named_code();
  const std::vector<std::vector<std::string>> groups = {
      {"func", "tree", "calls"}, {"events", "timeline"}, {"footprint"}, {"cache"},
      {"count", "events"},       {"branches", "bpred"},  {"null"}};
  const auto all = variants();
  for (const auto& tools : groups) {
    SCOPED_TRACE(tools.front());
    const Json first = analysis("fresh.citcat", "", tools);
    EXPECT_EQ(first["instructions"], 205);  // the halt never completes
    for (const auto& [recording, option] : all) {
      SCOPED_TRACE(recording + " " + option);
      const Json found = analysis(recording, option, tools);
      EXPECT_EQ(found["tools"], first["tools"]);
      EXPECT_EQ(found["instructions"], 205);
    }
  }
  for (const auto& [recording, option] : all) {
    const Json events = analysis(recording, option, {"events"})["tools"]["events"];
    EXPECT_EQ(events["events"].size(), 1u) << recording << option << events;
  }
}

/// INT3 whose handler throws its frame away: nothing that was delivered ever returns.
TEST_F(AnalysisPaths, KnowNoBoundOfInterruptsThatNeverReturn) {
  write_file(file("state.json"), flat_state());
  // mov ecx,40000h; L: int3; hlt. Handler at 5010: mov esp,7ff0h; dec ecx; jnz L; hlt
  const auto code = line_fill("CODE_RD", "5000", "b900000400ccf4") +
                    line_fill("CODE_RD", "5010", "bcf07f00004975edf4");
  write_file(file("c.csv"),
             "#citcat-capture 1 cpu=486 cache=write-back line=16 bus=4 mask=ffffffff\n"
             "icount,rep,clk,type,addr,size,flags,burst,data\n" +
                 code +
                 line_fill("MEM_RD", "6010",
                           "0000000000000000"
                           "10500800008e0000") +
                 line_fill("MEM_RD", "7000",
                           "0000000000000000"
                           "ffff0000009bcf00") +
                 line_fill("MEM_RD", "7fe0", "") + ",,0,HALT,0,0,-,0,\n");
  good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat", "-q"});
  constexpr int kTimes = 0x40000;
  const Json found = Json::parse(
      good({"analyze", "r.citcat", "--tool", "func", "--tool", "tree", "--json", "--unchecked"}));
  EXPECT_EQ(found["instructions"], 1 + 4 * kTimes);
  EXPECT_EQ(found["tools"]["func"]["instructions"], 1 + 4 * kTimes);
  EXPECT_EQ(found["tools"]["tree"]["instructions"], 1 + 4 * kTimes);
  const Json by = Json::parse(good(
      {"analyze", "r.citcat", "--tool", "null", "--by", "interrupt", "--json", "--unchecked"}));
  EXPECT_EQ(by["instructions"], 1 + 4 * kTimes);
}

}  // namespace
}  // namespace citcat::testing
