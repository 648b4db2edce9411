// A trace is the same from a recording and from each form that keeps notes: records, positions,
// sizes of code and events, and any position leads to the same instruction everywhere. Held to what
// the machine says while it runs, for every case of this folder and for the samples.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "events/archive/recording_file.h"
#include "events/position_text.h"
#include "golden/case_file.h"
#include "golden/citcat_test.h"
#include "golden/golden_files.h"
#include "replay/session/replayer.h"
#include "replay/trace/trace_reader.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// An instruction or iteration as the machine tells it.
struct Seen {
  Position position;
  std::uint32_t linear = 0;
  std::uint8_t bits = 0;
  bool operator==(const Seen&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << fmt::format("{} at {:08x}, {} bits", position_text(seen.position), seen.linear,
                            seen.bits);
}

/// The size of the code is that of CS as it is, asked before each instruction.
class Witness final : public Observer {
 public:
  void watch(const Machine& machine) override {
    machine_ = &machine;
    look();
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    list.push_back({now, e.linear.low32(), bits_});
  }
  void look() {
    constexpr std::uint32_t kBig = 0x4000;
    const CpuState state = machine_->save();
    const bool big = (state.segment[kCs].attributes & kBig) != 0;
    bits_ = big ? 32 : 16;
  }
  std::vector<Seen> list;

 private:
  const Machine* machine_ = nullptr;
  std::uint8_t bits_ = 0;
};

/// All of a run, one instruction or iteration at a time; empty when it diverges.
std::vector<Seen> witness(const Recording& recording) {
  Witness seen;
  ReplayOptions options;
  options.path = ExecutionPath::instructions;
  options.watch = [&seen](Position) {
    seen.look();
    return false;
  };
  Replayer replayer(recording, &seen, std::move(options));
  const ReplayReport report = replayer.run();
  if (report.end != ReplayReport::End::complete) return {};
  return seen.list;
}

std::vector<TraceRecord> read(const std::string& path, Position from = {}) {
  TraceReaderOptions options;
  options.check = false;
  options.events = true;
  TraceReader reader(path, options);
  if (from != Position{}) reader.seek(from);
  std::vector<TraceRecord> records;
  for (const TraceRecord& record : reader) records.push_back(record);
  return records;
}

std::vector<Seen> instructions(const std::vector<TraceRecord>& records) {
  std::vector<Seen> list;
  for (const TraceRecord& r : records) {
    if (!r.is_event) list.push_back({r.position, r.record.instruction.eip, r.bits});
  }
  return list;
}

std::string text(const TraceRecord& r) {
  std::string text = position_text(r.position);
  if (!r.is_event) return text + fmt::format(" {:08x}", r.record.instruction.eip);
  return text + fmt::format(" {} {:x} {:x} {:x}", kt_note_name(r.event.kind), r.event.where,
                            r.event.size, r.event.value);
}
std::vector<std::string> texts(const std::vector<TraceRecord>& records) {
  std::vector<std::string> lines;
  for (const TraceRecord& r : records) lines.push_back(text(r));
  return lines;
}

class TraceForms : public CitcatTest {
 protected:
  std::string at(const std::string& name) const { return file(name).string(); }
  /// The trace of "r.citcat" in every form; false when there is none of all of it.
  bool make_forms(bool checked = false) const {
    for (const char* name : {"t.kt.zst", "t.ktz", "t.kt"}) {
      std::vector<std::string> command = {"replay", "r.citcat", "-o", name};
      if (!checked) command.push_back("--unchecked");
      if (run(command).exit_code != 0) return false;
    }
    return true;
  }
};

TEST_F(TraceForms, OfEveryCaseAreReadAlikeAndAsTheMachineSaysFromEveryPosition) {
  int cases = 0;
  for (const auto& path : golden_files("cases", ".case")) {
    SCOPED_TRACE(path.filename());
    const CaseFile given = load_case(path);
    if (!given.bus.empty()) continue;                 // its interrupts have no place
    if (given.recording.initial.long_mode) continue;  // of addresses of 64 bits there is no .ktz
    const std::vector<Seen> expected = witness(given.recording);
    if (expected.empty()) continue;
    RecordingFileWriter(at("r.citcat")).finish(given.recording);
    ASSERT_TRUE(make_forms());
    ++cases;
    const std::vector<TraceRecord> whole = read(at("r.citcat"));
    EXPECT_EQ(instructions(whole), expected);
    for (const char* form : {"t.kt.zst", "t.ktz"}) {
      EXPECT_EQ(instructions(read(at(form))), expected) << form;
      EXPECT_EQ(texts(read(at(form))), texts(whole)) << form;
    }
    for (const Seen& place : expected) {
      const auto first = std::find_if(whole.begin(), whole.end(), [&](const TraceRecord& r) {
        return r.position >= place.position;
      });
      const std::vector<std::string> rest = texts({first, whole.end()});
      for (const char* form : {"r.citcat", "t.kt.zst", "t.ktz"}) {
        EXPECT_EQ(texts(read(at(form), place.position)), rest)
            << form << " from " << position_text(place.position);
      }
    }
  }
  EXPECT_GE(cases, 20);
}

TEST_F(TraceForms, OfASplitRepLeadEveryCommandToTheSameInstruction) {
  const CaseFile given = load_case(std::filesystem::path(CITCAT_SOURCE_DIR) /
                                   "tests/golden/cases/code-sizes-and-rep.case");
  RecordingFileWriter(at("r.citcat")).finish(given.recording);
  ASSERT_TRUE(make_forms());
  for (const std::string from : {"0", "1", "1+1", "1+2", "2", "6", "6+1", "7", "7+1", "10", "12"}) {
    const std::string expected =
        good({"cat", "r.citcat", "--unchecked", "--format", "text", "--from", from});
    EXPECT_THAT(expected, Not(HasSubstr(";")));
    for (const char* form : {"t.kt.zst", "t.ktz"}) {
      EXPECT_EQ(good({"cat", form, "--format", "text", "--from", from}), expected) << form << from;
      EXPECT_EQ(good({"dump", form, "--from", from}), expected) << form << from;
    }
    good({"replay", "r.citcat", "--unchecked", "--from", from, "-o", "part.kt.zst"});
    EXPECT_EQ(good({"dump", "part.kt.zst"}), expected) << from;
    const auto info = nlohmann::json::parse(good({"info", "part.kt.zst", "--json"}));
    EXPECT_EQ(info.at("positions"), "recorded");
    EXPECT_TRUE(good({"cat", "r.citcat", "--unchecked", "--from", from}) ==
                good({"cat", "t.ktz", "--from", from}))
        << from;
    // What ends there and what begins there are the whole.
    for (const char* form : {"r.citcat", "t.kt.zst", "t.ktz"}) {
      EXPECT_EQ(good({"cat", form, "--unchecked", "--format", "json", "--to", from}) +
                    good({"cat", form, "--unchecked", "--format", "json", "--from", from}),
                good({"cat", form, "--unchecked", "--format", "json"}))
          << form << from;
    }
  }
}

TEST_F(TraceForms, TellTheSizeOfCodeThatPlainKtLeavesToAGuess) {
  const CaseFile given = load_case(std::filesystem::path(CITCAT_SOURCE_DIR) /
                                   "tests/golden/cases/code-sizes-and-rep.case");
  RecordingFileWriter(at("r.citcat")).finish(given.recording);
  ASSERT_TRUE(make_forms());
  for (const char* form : {"r.citcat", "t.kt.zst", "t.ktz"}) {
    const std::string all = good({"cat", form, "--unchecked", "--format", "text"});
    EXPECT_THAT(all, HasSubstr("           0 00005000 51                     push cx @000047fe\n"));
    EXPECT_THAT(all, HasSubstr("           3 00005010 51                     push ecx @"));
    EXPECT_THAT(all, HasSubstr("         6+2 interrupt 20\n           6 00005100"));
    EXPECT_THAT(all,
                HasSubstr("         1+1 external_write 00004002 size 1\n         1+1 00005001"));
    EXPECT_THAT(all, HasSubstr(" port_read 0060 size 1 value 5a\n"));
    EXPECT_THAT(all, HasSubstr(" port_write 0061 size 1 value 5a\n"));
    EXPECT_THAT(all, HasSubstr(" software interrupt 21\n"));
    EXPECT_THAT(all, HasSubstr(" halt\n"));
    const std::string json = good({"cat", form, "--unchecked", "--format", "json", "--to", "4"});
    EXPECT_THAT(json, HasSubstr(R"("mode":"16","mode_source":"recorded")"));
    EXPECT_THAT(json, HasSubstr(R"("mode":"32","mode_source":"recorded")"));
  }
  EXPECT_THAT(good({"dump", "t.kt"}),
              HasSubstr("; The trace does not say whether its code is 16-bit"));
  EXPECT_THAT(good({"dump", "t.kt", "--format", "json"}), HasSubstr(R"("mode_source":"guessed")"));
  EXPECT_THAT(good({"dump", "t.kt", "--format", "json", "--bits", "16"}),
              HasSubstr(R"("mode":"16","mode_source":"given")"));
}

TEST_F(TraceForms, OfTheSampleHaveAsManyInstructionsAsItsVerdict) {
  import_sample("r.citcat");
  ASSERT_TRUE(make_forms(true));
  const auto verdict = nlohmann::json::parse(good({"verify", "r.citcat", "--json"}));
  for (const char* form : {"t.kt.zst", "t.ktz", "t.kt"}) {
    const auto info = nlohmann::json::parse(good({"info", form, "--json"}));
    EXPECT_EQ(info.at("instructions"), verdict.at("instructions")) << form;
    EXPECT_EQ(info.at("executions"), 8458) << form;
  }
  EXPECT_THAT(good({"cat", "r.citcat", "--format", "text", "--to", "1"}),
              HasSubstr("           0 interrupt 08\n           0 0000fc78 51  "));
  EXPECT_THAT(good({"cat", "r.citcat", "--format", "text", "--to", "1"}), HasSubstr("push cx"));
}

TEST_F(TraceForms, OfSeveralProcessesAndOfMergedSharesAreThatOfOne) {
  import_sample("r.citcat");
  good({"checkpoint", "r.citcat", "--every", "50"});
  for (const char* form : {"kt.zst", "ktz"}) {
    const std::string one = std::string("one.") + form;
    good({"replay", "r.citcat", "--processes", "--from-start", "-o", one});
    const std::string expected = good({"dump", one, "--format", "json"});
    EXPECT_THAT(expected, HasSubstr("\"pid\""));
    const std::string jobs = std::string("jobs.") + form;
    good({"replay", "r.citcat", "--processes", "--jobs", "3", "-o", jobs});
    EXPECT_TRUE(good({"dump", jobs, "--format", "json"}) == expected) << form;
    for (const char* k : {"1/3", "2/3", "3/3"}) {
      good({"replay", "r.citcat", "--processes", "--unchecked", "--shard", k, "-o",
            std::string("s.") + form});
    }
    const std::string shares = std::string("-of-0003.") + form, merged = std::string("m.") + form;
    good({"merge", "s.0001" + shares, "s.0002" + shares, "s.0003" + shares, "-o", merged});
    EXPECT_TRUE(good({"dump", merged, "--format", "json"}) == expected) << form;
    EXPECT_TRUE(good({"cat", merged}) == good({"cat", one})) << form;
  }
}

/// The records before the first instruction.
std::vector<nlohmann::json> preamble(const std::string& json_lines) {
  std::vector<nlohmann::json> records;
  std::istringstream lines(json_lines);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("eip")) break;
    if (!json.contains("event")) records.push_back(json);
  }
  return records;
}

TEST_F(TraceForms, BeginWithTheProcessAndWithTranslationsThatEarlierRecordsTold) {
  import_linux_sample("r.citcat");
  good({"checkpoint", "r.citcat", "--every", "5000"});
  // What a reader of the whole trace knows by then.
  std::map<std::string, nlohmann::json> pages;
  nlohmann::json process;
  std::istringstream whole(
      good({"cat", "r.citcat", "--processes", "--format", "json", "--to", "7501"}));
  for (std::string line; std::getline(whole, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("pid")) process = json;
    if (json.contains("page")) pages[json.at("page")] = json.at("frame");
  }
  const std::vector<std::vector<std::string>> commands = {{"cat", "r.citcat"},
                                                          {"cat", "r.citcat", "--from-start"}};
  std::string first;
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--processes", "--from", "7500", "--to", "7600"});
    const std::string kt = good(command);
    command.insert(command.end(), {"--format", "json"});
    const std::string json = good(command);
    const auto records = preamble(json);
    ASSERT_GT(records.size(), 2U);
    EXPECT_EQ(records.front(), process);
    for (std::size_t i = 1; i < records.size(); ++i) {
      ASSERT_TRUE(pages.count(records[i].at("page"))) << records[i];
      EXPECT_EQ(records[i].at("frame"), pages[records[i].at("page")]);
    }
    if (first.empty()) first = kt;
    EXPECT_TRUE(kt == first);
  }
  for (const char* jobs : {"1", "2"}) {
    good({"replay", "r.citcat", "--processes", "--jobs", jobs, "--from", "7500", "--to", "7600",
          "-o", "part.kt"});
    EXPECT_TRUE(read_file(file("part.kt")) == first) << jobs;
  }
}

}  // namespace
}  // namespace citcat::testing
