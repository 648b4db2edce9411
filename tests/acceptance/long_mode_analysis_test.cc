// What tools find in captures of 64-bit machines, held to the ground truth of an independent
// simulator (data/machine64/FORMAT64.md), decoded here without any code of theirs.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "acceptance/machine_run.h"
#include "capture/import/import.h"
#include "formats/io/input.h"
#include "tools/guest/guest_observer.h"
#include "tools/host/analysis.h"
#include "tools/host/report_renderers.h"
#include "tools/host/scope.h"
#include "tools/host/tool_host.h"
#include "tools/list/tool_list.h"
#include "unit/capture/machine_data.h"
#include "unit/drmemtrace_reader.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using nlohmann::ordered_json;

/// A record of golden.bin.zst.
struct WideRecord {
  std::uint8_t kind, a, b, c;
  std::uint32_t d;
  std::uint64_t linear, instruction;
  std::array<std::uint8_t, 40> x;
  std::uint64_t u64(std::size_t at) const {
    std::uint64_t value = 0;
    std::memcpy(&value, &x[at], sizeof value);
    return value;
  }
};
static_assert(sizeof(WideRecord) == 64);
constexpr std::uint8_t kInstructionRecord = 1, kAccessRecord = 2, kEventRecord = 3,
                       kRegisterRecord = 4;

std::vector<WideRecord> golden_records(const std::string& name) {
  const auto bytes =
      read_whole_file(machine64_folder() + "/" + name + "/golden.bin.zst", std::uint64_t{1} << 30);
  std::vector<WideRecord> all(bytes.size() / sizeof(WideRecord));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(WideRecord));
  return all;
}

/// An instruction that was started.
struct StartedWide {
  std::uint64_t linear = 0, instruction = 0;
  std::string code;
  std::uint16_t cs = 0;
  bool completed = false;
  std::uint32_t done = 0;  ///< of a REP: iterations when something happened
};

std::vector<StartedWide> started(const std::vector<WideRecord>& records) {
  std::vector<StartedWide> all;
  for (const WideRecord& r : records) {
    if (r.kind == kInstructionRecord) {
      if (!all.empty()) all.back().completed = r.instruction > all.back().instruction;
      all.push_back({r.linear, r.instruction, std::string(r.x.begin(), r.x.begin() + r.a),
                     static_cast<std::uint16_t>(r.b | r.c << 8), false, 0});
    } else if (r.kind == kEventRecord && !all.empty() && r.a <= 2) {
      std::uint32_t done = 0;
      std::memcpy(&done, &r.x[32], sizeof done);
      all.back().done = std::max(all.back().done, done);
    }
  }
  return all;
}

template <class T>
T number_at(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

class LongModeAnalysis : public TemporaryFolder {
 protected:
  static constexpr const char* kName = "k64_procs_tiny";
  /// Instructions that are looked at: the evidence ends a little before the machine's own records.
  static constexpr std::uint64_t kTo = 149'000;

  static void SetUpTestSuite() {
    if (machine64_folder().empty()) return;
    imported_ =
        std::make_unique<ImportedRecording>(import_machine64({kName, 'A'}, IgnoreCounts::none));
    golden_ = golden_records(kName);
    std::erase_if(golden_, [](const WideRecord& r) { return r.instruction >= kTo; });
  }
  static void TearDownTestSuite() {
    imported_.reset();
    golden_.clear();
  }
  void SetUp() override {
    if (machine64_folder().empty()) GTEST_SKIP() << "shared/data/machine64 is not there";
  }

  static ordered_json ask(const std::vector<std::string>& requests, const std::string& where = "") {
    tools::NameSource names;
    tools::Setup setup;
    setup.names = &names;
    setup.recording = &imported_->recording;
    setup.machine = tools::MachineFacts::of(imported_->recording);
    std::vector<tools::ToolOptions> parsed;
    for (const std::string& r : requests) parsed.push_back(tools::ToolOptions::parse(r));
    tools::Analysis analysis(tools::find_tools(std::move(parsed)), setup, {});
    std::optional<tools::Scope> scope;
    if (!where.empty()) scope.emplace(where, names, 0, 1);
    tools::HostOptions options;
    options.to = kTo;
    options.scope = scope ? &*scope : nullptr;
    options.names = &names;
    tools::ToolHost host(analysis, options);
    replay(host);
    host.finish();
    tools::Report report;
    analysis.report(report);
    return tools::report_json(report)["tools"];
  }
  static void replay(Observer& observer) {
    Listeners listeners;
    listeners.add(observer);
    ReplayOptions options;
    options.evidence = [] { return imported_->read_evidence(); };
    options.to = kTo;
    Replayer replayer(imported_->recording, listeners, options);
    EXPECT_NE(replayer.run().end, ReplayReport::End::diverged);
  }

  static inline std::unique_ptr<ImportedRecording> imported_;
  static inline std::vector<WideRecord> golden_;
};

/// Linux isolates page tables here: a process has two, one page from each other.
TEST_F(LongModeAnalysis, AProcessWithIsolatedTablesIsOneProcess) {
  const ordered_json switches = ask({"switches"})["switches"];
  std::set<std::string> processes;
  for (const ordered_json& row : switches.at("processes"))
    processes.insert(row.at("process").get<std::string>());
  EXPECT_GE(processes.size(), 2u);
  for (const std::string& process : processes) {
    if (process.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
    EXPECT_EQ(std::stoull(process, nullptr, 16) & 0x1000, 0u) << process;
  }
  // The page fault at 3676 comes from the program whose run goes on behind it.
  for (const ordered_json& row : switches.at("list"))
    EXPECT_GT(std::stoull(row.at("position").get<std::string>()), 5025u);
}

TEST_F(LongModeAnalysis, InstructionsAreCountedAndCoveredAsInTheGoldenStream) {
  std::set<std::pair<std::uint64_t, std::string>> different;
  std::set<std::uint64_t> bytes;
  std::uint64_t executions = 0, completed = 0, kernel = 0, user = 0;
  for (const StartedWide& s : started(golden_)) {
    if (s.instruction + 1 == kTo) ++completed;  // nothing follows that shows it
    if (!s.completed && s.done == 0 && s.instruction + 1 != kTo) continue;
    different.emplace(s.linear, s.code);
    for (std::size_t i = 0; i < s.code.size(); ++i) bytes.insert(s.linear + i);
    ++executions;
    completed += s.completed ? 1 : 0;
    kernel += s.linear >> 63;
    user += (s.cs & 3) == 3 ? 1 : 0;
  }
  ASSERT_GT(kernel, 0u);
  ASSERT_GT(user, 0u);
  const ordered_json found = ask({"count", "coverage"});
  EXPECT_EQ(found["count"]["executions"], executions);
  EXPECT_EQ(found["count"]["instructions"], completed);
  EXPECT_EQ(found["count"]["static_instructions"], different.size());
  EXPECT_EQ(found["coverage"]["bytes"], bytes.size());
  std::set<std::uint64_t> covered;
  for (const auto& row : found["coverage"]["executed"]) {
    const auto number = [&](const char* key) {
      return std::stoull(row[key].get<std::string>(), nullptr, 16);
    };
    for (std::uint64_t at = number("begin"); at < number("end"); ++at) covered.insert(at);
  }
  EXPECT_EQ(covered, bytes);
  EXPECT_EQ(ask({"count"}, "level=3")["count"]["executions"], user);
  EXPECT_EQ(ask({"count"}, "code=ffff800000000000-ffffffffffffffff")["count"]["executions"],
            kernel);
}

TEST_F(LongModeAnalysis, AccessesAreThoseOfTheGoldenStreamWithTheirLinearAddresses) {
  // Bytes of data by linear address and direction: how an access is parted does not matter.
  using Bytes = std::map<std::pair<std::uint64_t, bool>, std::uint64_t>;
  Bytes golden;
  for (const WideRecord& r : golden_) {
    if (r.kind != kAccessRecord || r.c != 0) continue;
    for (std::uint32_t i = 0; i < r.a; ++i) ++golden[{r.linear + i, r.b == 1}];
  }
  const ordered_json found = ask({"watch:at=0-ffffffffffffffff,reads,most=16777216", "memory"});
  Bytes watched;
  std::uint64_t high = 0;
  for (const auto& row : found["watch"]["list"]) {
    const std::uint64_t at = std::stoull(row["address"].get<std::string>(), nullptr, 16);
    const auto size = row["size"].get<std::uint64_t>();
    for (std::uint64_t i = 0; i < size; ++i) ++watched[{at + i, row["direction"] == "write"}];
    high += at >> 32 != 0 ? 1 : 0;
  }
  EXPECT_GT(high, 0u);
  // Descriptors, gates and frames are told of besides (AccessKind::system).
  std::uint64_t missing = 0, foreign = 0;
  for (const auto& [key, count] : watched) {
    const auto there = golden.find(key);
    if (there == golden.end() || there->second < count) ++foreign;
  }
  for (const auto& [key, count] : golden) {
    const auto there = watched.find(key);
    if (there == watched.end() || there->second < count) ++missing;
  }
  EXPECT_EQ(foreign, 0u);
  EXPECT_LT(missing, golden.size() / 50);
}

TEST_F(LongModeAnalysis, EventsHaveTheirNamesAndTheLevelThatTheyCameFrom) {
  const std::map<std::string, std::string> names = {{std::string("\x0f\x05", 2), "SYSCALL"},
                                                    {std::string("\x48\x0f\x07", 3), "SYSRET"},
                                                    {std::string("\x0f\x34", 2), "SYSENTER"},
                                                    {std::string("\x0f\x35", 2), "SYSEXIT"}};
  struct Seen {
    std::uint64_t count = 0, from_user = 0;
  };
  std::map<std::string, Seen> golden, found;
  for (const StartedWide& s : started(golden_)) {
    const auto name = names.find(s.code);
    if (name == names.end() || !s.completed) continue;
    Seen& seen = golden[name->second];
    ++seen.count;
    const bool enters = name->second == "SYSCALL" || name->second == "SYSENTER";
    if (enters && (s.cs & 3) == 3) ++seen.from_user;
  }
  ASSERT_GT(golden["SYSCALL"].from_user, 0u);
  const ordered_json all = ask({"events"});
  for (const auto& row : all["events"]["events"]) {
    const std::string name = row["event"];
    if (name.starts_with("SYS")) found[name] = {row["count"], row["from_user"]};
  }
  ASSERT_EQ(found.size(), golden.size());
  for (const auto& [name, seen] : golden) {
    EXPECT_EQ(found[name].count, seen.count) << name;
    EXPECT_EQ(found[name].from_user, seen.from_user) << name;
  }
}

TEST_F(LongModeAnalysis, TracesForSimulatorsHoldTheGoldenStream) {
  const std::string memtrace = path("run.drmemtrace"), champsim = path("run.champsim");
  ask({"drmemtrace:to=" + memtrace, "champsim:to=" + champsim});
  const drmemtrace::DrTrace trace = drmemtrace::read_drmemtrace(memtrace);
  EXPECT_TRUE(trace.problems.empty()) << trace.problems.front();
  EXPECT_EQ(trace.file_type,
            (std::set<std::string_view>{"WHOLE_SYSTEM", "ENCODINGS", "ARCH_X86_64"}));
  EXPECT_GT(trace.files, 1u);
  const std::vector<drmemtrace::DrInstruction>& traced = trace.instructions;

  std::vector<std::pair<std::uint64_t, std::string>> expected, found;
  for (const StartedWide& s : started(golden_)) {
    const bool executed = s.completed || s.done != 0 || s.instruction + 1 == kTo;
    if (executed) expected.emplace_back(s.linear, drmemtrace::encoded_for_dr(s.code));
  }
  std::map<std::pair<std::uint64_t, bool>, std::uint64_t> golden;
  for (const WideRecord& r : golden_) {
    if (r.kind != kAccessRecord || r.c != 0) continue;
    for (std::uint32_t i = 0; i < r.a; ++i) ++golden[{r.linear + i, r.b == 1}];
  }
  const std::size_t bytes = golden.size();
  std::uint64_t foreign = 0;
  std::uint64_t wrong_levels = 0;
  for (const drmemtrace::DrInstruction& t : traced) {
    wrong_levels += t.kernel != (t.address >> 63 != 0) ? 1 : 0;
    if (t.fetched()) found.emplace_back(t.address, t.code);
    for (const drmemtrace::DrInstruction::Access& a : t.accesses) {
      for (std::uint32_t i = 0; i < a.size; ++i) {
        const auto there = golden.find({a.address + i, a.write});
        if (there == golden.end()) {
          // FXRSTOR has one record, with bytes that no processor reads.
          foreign += a.size <= 64 ? 1 : 0;
        } else if (--there->second == 0) {
          golden.erase(there);
        }
      }
    }
  }
  EXPECT_TRUE(found == expected);
  EXPECT_EQ(wrong_levels, 0u) << "programs run outside of events, and the kernel within one";
  EXPECT_EQ(foreign, 0u);
  EXPECT_LT(golden.size(), bytes / 50) << "of deliveries, and what a record has no place for";

  // ChampSim's records, as docs/export/champsim.md has them.
  const auto file = read_whole_file(champsim, std::uint64_t{1} << 30);
  constexpr std::size_t kRecord = 64;
  ASSERT_EQ(file.size(), kRecord * traced.size());
  std::uint64_t addresses = 0, branches = 0;
  for (std::size_t i = 0; i < traced.size(); ++i) {
    const std::size_t at = kRecord * i;
    ASSERT_EQ(number_at<std::uint64_t>(file, at), traced[i].address) << i;
    const bool is_branch = file[at + 8] != 0, taken = file[at + 9] != 0;
    branches += is_branch ? 1 : 0;
    ASSERT_TRUE(is_branch || !taken);
    std::array<std::vector<std::uint64_t>, 2> of;  // read, written
    for (const drmemtrace::DrInstruction::Access& a : traced[i].accesses)
      of[a.write ? 1 : 0].push_back(a.address);
    of[0].resize(std::min<std::size_t>(of[0].size(), 4));
    of[1].resize(std::min<std::size_t>(of[1].size(), 2));
    for (std::size_t n = 0; n < of[1].size(); ++n, ++addresses) {
      ASSERT_EQ(number_at<std::uint64_t>(file, at + 16 + 8 * n), of[1][n]) << i;
    }
    for (std::size_t n = 0; n < of[0].size(); ++n, ++addresses) {
      ASSERT_EQ(number_at<std::uint64_t>(file, at + 32 + 8 * n), of[0][n]) << i;
    }
  }
  EXPECT_GT(addresses, 10'000u);
  EXPECT_GT(branches, 10'000u);
}

TEST_F(LongModeAnalysis, SystemCallsAreThoseThatTheMachineLogged) {
  struct Followed final : tools::SystemCallListener {
    void began(const tools::SystemCall& call) override { begun.push_back(call); }
    void ended(const tools::SystemCall& call) override { ends.push_back(call); }
    std::vector<tools::SystemCall> begun, ends;
  } followed;
  tools::GuestObserver observer(&followed);
  replay(observer);

  // Registers behind an instruction are in three records: six of them each.
  std::array<std::uint64_t, 18> now{};
  const std::uint64_t registers_known =
      MachineData(machine64_folder() + "/" + kName).meta("golden_regs");
  struct Logged {
    std::uint64_t instruction = 0;
    std::array<std::uint64_t, 18> gpr{};
  };
  std::vector<Logged> calls, returns;
  for (const WideRecord& r : golden_) {
    if (r.kind == kRegisterRecord && r.a < 3) {
      now[6u * r.a] = r.linear;
      for (std::size_t i = 0; i < 5; ++i) now[6u * r.a + 1 + i] = r.u64(8 * i);
    }
    if (r.kind != kInstructionRecord || r.instruction >= registers_known) continue;
    const bool user = (r.b & 3) == 3;
    if (user && r.a == 2 && r.x[0] == 0x0f && r.x[1] == 0x05) calls.push_back({r.instruction, now});
    if (r.a == 3 && r.x[0] == 0x48 && r.x[1] == 0x0f && r.x[2] == 0x07) {
      returns.push_back({r.instruction, now});
    }
  }
  ASSERT_GT(calls.size(), 0u);
  std::erase_if(followed.begun, [&](const tools::SystemCall& call) {
    return call.begin.instruction >= registers_known;
  });
  ASSERT_EQ(followed.begun.size(), calls.size());
  enum : std::size_t { kRax, kRcx, kRdx, kRbx, kRsp, kRbp, kRsi, kRdi, kR8, kR9, kR10 };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const tools::SystemCall& call = followed.begun[i];
    const auto& gpr = calls[i].gpr;
    EXPECT_EQ(call.begin.instruction, calls[i].instruction);
    EXPECT_EQ(call.of, tools::SystemCallInterface::amd64);
    EXPECT_EQ(call.number, gpr[kRax]);
    const std::array<std::uint64_t, 6> arguments{gpr[kRdi], gpr[kRsi], gpr[kRdx],
                                                 gpr[kR10], gpr[kR8],  gpr[kR9]};
    EXPECT_EQ(call.arguments, arguments) << tools::system_call_text(call);
  }
  std::size_t compared = 0;
  for (const tools::SystemCall& call : followed.ends) {
    for (const Logged& logged : returns) {
      if (logged.instruction != call.end.instruction) continue;
      EXPECT_EQ(call.result, logged.gpr[kRax]) << tools::system_call_text(call);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0u);
}

}  // namespace
}  // namespace citcat::test
