// What tools find in the shared captures, held to decodings of the ground truth that share no code
// with them, and to themselves where the run is told in another way or in parts.

#include "tools/host/analysis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "acceptance/machine_run.h"
#include "formats/io/input.h"
#include "tools/host/report_renderers.h"
#include "tools/host/scope.h"
#include "tools/host/tool_host.h"
#include "tools/list/tool_list.h"
#include "unit/capture/machine_data.h"

namespace citcat::test {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kWhole = ~std::uint64_t{0};

struct Asked {
  std::vector<std::string> tools;
  std::uint64_t from = 0, to = kWhole;
  ExecutionPath path = ExecutionPath::blocks;
  std::string where = {}, by = {};
};

/// Tools that were told, with the names that they may use.
struct Told {
  std::unique_ptr<tools::NameSource> names = std::make_unique<tools::NameSource>();
  std::unique_ptr<tools::Analysis> analysis;
};

Told tell(const ImportedRecording& imported, const Asked& asked, bool begins = true) {
  Told told;
  tools::Setup setup;
  setup.names = told.names.get();
  setup.recording = &imported.recording;
  setup.machine = tools::MachineFacts::of(imported.recording);
  setup.from = asked.from;
  setup.begins = begins;
  std::vector<tools::ToolOptions> requests;
  for (const std::string& tool : asked.tools) requests.push_back(tools::ToolOptions::parse(tool));
  told.analysis = std::make_unique<tools::Analysis>(
      tools::find_tools(std::move(requests)), setup,
      asked.by.empty() ? std::vector<tools::Split>{} : tools::parse_splits(asked.by));
  std::optional<tools::Scope> scope;
  if (!asked.where.empty()) scope.emplace(asked.where, *told.names, 0, 1);
  tools::HostOptions options;
  options.from = asked.from;
  options.to = asked.to;
  options.scope = scope ? &*scope : nullptr;
  options.names = told.names.get();
  tools::ToolHost host(*told.analysis, options);
  Listeners listeners;
  listeners.add(host);
  ReplayOptions replay;
  replay.evidence = [&imported] { return imported.read_evidence(); };
  replay.path = asked.path;
  replay.to = asked.to;
  Replayer replayer(imported.recording, listeners, replay);
  if (const auto walks = told.analysis->walks()) replayer.machine().set_walk_policy(*walks);
  EXPECT_NE(replayer.run().end, ReplayReport::End::diverged);
  host.finish();
  return told;
}

ordered_json json_of(const tools::Analysis& analysis) {
  tools::Report report;
  analysis.report(report);
  return tools::report_json(report);
}

ordered_json ask(const ImportedRecording& imported, const Asked& asked) {
  return json_of(*tell(imported, asked).analysis);
}

/// Records of golden.bin (FORMAT.md, section 5): kind, then what belongs to it.
struct NarrowRecord {
  std::uint8_t bytes[40];
  std::uint8_t kind() const { return bytes[0]; }
  std::uint32_t u32(std::size_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes + at, 4);
    return value;
  }
  std::uint64_t icount() const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes + 32, 8);
    return value;
  }
};

/// Up to the first record of instruction `to`.
std::vector<NarrowRecord> golden_records(const std::string& name, std::uint64_t to) {
  InputStream in(machine_folder() + "/" + name + "/golden.bin.zst");
  std::vector<NarrowRecord> records;
  for (NarrowRecord r; in.read({r.bytes, sizeof r.bytes}) == sizeof r.bytes;) {
    if (r.kind() == 1 && r.icount() >= to) break;
    records.push_back(r);
  }
  return records;
}

bool is_prefix(std::uint8_t byte) {
  static const std::set<std::uint8_t> kPrefixes = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
                                                   0x66, 0x67, 0xf0, 0xf2, 0xf3};
  return kPrefixes.contains(byte);
}

/// An instruction that was started.
struct StartedCode {
  std::uint32_t linear = 0;
  std::string code;
  std::uint64_t icount = 0;
  bool completed = false;
  std::uint32_t done = 0;  ///< of a REP: iterations when something happened
};

std::vector<StartedCode> started(const std::vector<NarrowRecord>& records, std::uint64_t to) {
  std::vector<StartedCode> all;
  for (const NarrowRecord& r : records) {
    if (r.kind() == 1) {
      if (!all.empty()) all.back().completed = r.icount() > all.back().icount;
      const auto* const code = reinterpret_cast<const char*>(r.bytes + 16);
      all.push_back({r.u32(8), std::string(code, r.bytes[1]), r.icount(), false, 0});
    } else if (r.kind() == 3 && !all.empty() && r.bytes[1] <= 2) {
      all.back().done = std::max(all.back().done, r.u32(12));
    }
  }
  if (!all.empty()) all.back().completed = all.back().icount + 1 == to;
  return all;
}

struct Branch {
  std::uint32_t address = 0, length = 0;
  bool taken = false;
};

/// Conditional branches that are seen to go to their target or behind themselves.
std::vector<Branch> conditional_branches(const std::vector<StartedCode>& all) {
  std::vector<Branch> branches;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const std::string& code = all[i].code;
    std::size_t p = 0;
    while (is_prefix(static_cast<std::uint8_t>(code[p]))) ++p;
    const auto opcode = static_cast<std::uint8_t>(code[p]);
    const bool two = opcode == 0x0f && (static_cast<std::uint8_t>(code[p + 1]) & 0xf0) == 0x80;
    if (!two && (opcode & 0xf0) != 0x70 && (opcode & 0xfc) != 0xe0) continue;
    const auto length = static_cast<std::uint32_t>(code.size());
    std::int32_t displacement = static_cast<std::int8_t>(code.back());
    if (two) std::memcpy(&displacement, &code[code.size() - 4], 4);
    const std::uint32_t behind = all[i].linear + length;
    const std::uint32_t to = all[i + 1].linear;
    if (to != behind && to != behind + static_cast<std::uint32_t>(displacement)) continue;
    branches.push_back({all[i].linear, length, to != behind});
  }
  return branches;
}

struct Predicted {
  std::uint64_t idtrace = 0, two_bit = 0;
};

Predicted predict(const std::vector<Branch>& branches, std::uint32_t entries) {
  std::map<std::uint32_t, int> saturating, three;  // absent: weakly taken
  Predicted correct;
  for (const Branch& b : branches) {
    const std::uint32_t entry = (b.address + b.length - 1) % entries;
    int& s = saturating.try_emplace(entry, 2).first->second;
    correct.two_bit += (s >= 2) == b.taken ? 1 : 0;
    s = std::clamp(s + (b.taken ? 1 : -1), 0, 3);
    int& t = three.try_emplace(entry, 1).first->second;
    correct.idtrace += (t >= 1) == b.taken ? 1 : 0;
    t = std::clamp(t + (b.taken ? 1 : -1), 0, 2);
  }
  return correct;
}

struct Expected {
  const char* name;
  char form;
  std::uint64_t to, branches, distinct;
  double idtrace, two_bit;
};

class SharedCaptures : public testing::Test {
 protected:
  void SetUp() override {
    if (machine_folder().empty()) GTEST_SKIP() << "the shared captures are not there";
  }
  static ImportedRecording import(const std::string& name, char form) {
    return import_machine({name, form}, IgnoreCounts::none);
  }
  static ImportedRecording import_wide(const std::string& name, char form) {
    return import_machine64({name, form}, IgnoreCounts::none);
  }
};

TEST_F(SharedCaptures, BranchesArePredictedAsBySimpleModels) {
  for (const Expected& e :
       {Expected{"lin_user_small", 'B', 300'000, 34'165, 1'934, 88.450, 89.788},
        Expected{"lin_procs_small", 'B', 400'000, 45'705, 2'178, 89.084, 90.406},
        Expected{"lin_kboot_medium", 'C', 200'000, 40'134, 349, 95.804, 96.195}}) {
    SCOPED_TRACE(e.name);
    const ordered_json found =
        ask(import(e.name, e.form), {{"bpred:entries=1024"}, 0, e.to})["tools"]["bpred"];
    const auto branches = conditional_branches(started(golden_records(e.name, e.to + 1), e.to));
    const Predicted correct = predict(branches, 1024);
    EXPECT_EQ(found["branches"], branches.size());
    EXPECT_EQ(found["branches"], e.branches);
    EXPECT_EQ(found["distinct"], e.distinct);
    EXPECT_EQ(found["correct"]["idtrace"], correct.idtrace);
    EXPECT_EQ(found["correct"]["two_bit"], correct.two_bit);
    EXPECT_NEAR(found["percent"]["idtrace"].get<double>(), e.idtrace, 0.0005);
    EXPECT_NEAR(found["percent"]["two_bit"].get<double>(), e.two_bit, 0.0005);
  }
}

/// "conditional", "jump", "call" or "return"; empty of what is none of these. Near ones alone.
std::string branch_class(const std::string& code) {
  std::size_t p = 0;
  while (is_prefix(static_cast<std::uint8_t>(code[p]))) ++p;
  const auto opcode = static_cast<std::uint8_t>(code[p]);
  const auto next = static_cast<std::uint8_t>(p + 1 < code.size() ? code[p + 1] : 0);
  if (opcode == 0x0f ? (next & 0xf0) == 0x80 : (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0) {
    return "conditional";
  }
  const unsigned extension = opcode == 0xff ? next >> 3 & 7 : 0;
  if (opcode == 0xe9 || opcode == 0xeb || extension == 4) return "jump";
  if (opcode == 0xe8 || extension == 2) return "call";
  return opcode == 0xc2 || opcode == 0xc3 ? "return" : "";
}

TEST_F(SharedCaptures, EveryBranchThatWasExecutedIsCounted) {
  for (const auto& [name, to] : {std::pair{"lin_user_small", 300'000},
                                 {"lin_procs_small", 400'000},
                                 {"bios486_tiny", 50'000}}) {
    SCOPED_TRACE(name);
    const auto n = static_cast<std::uint64_t>(to);
    std::map<std::string, std::uint64_t> executed;
    std::map<std::uint32_t, std::uint64_t> single;
    for (const StartedCode& s : started(golden_records(name, n + 1), n)) {
      const std::string kind = branch_class(s.code);
      if (kind.empty() || !s.completed || s.icount >= n) continue;
      ++executed[kind];
      ++single[s.linear];
    }
    const ordered_json found =
        ask(import(name, 'B'), {{"branches:show=16777216"}, 0, n})["tools"]["branches"];
    for (const auto& row : found["classes"]) EXPECT_EQ(row["branches"], executed[row["class"]]);
    ASSERT_EQ(found["busiest"].size(), single.size());
    for (const auto& row : found["busiest"]) {
      const std::string address = row["address"];
      EXPECT_EQ(row["executions"],
                single[static_cast<std::uint32_t>(std::stoull(address, nullptr, 16))])
          << address;
    }
  }
}

TEST_F(SharedCaptures, AddressesOfLongAccessesAreOnTheLinesToo) {
  const ordered_json found = ask(import("lin_fpu_small", 'B'), {{"power", "memory"}})["tools"];
  std::uint64_t accesses = 0, longer = 0;
  for (const auto& row : found["memory"]["kinds"]) {
    if (row["kind"] != "data") continue;
    const auto count = row["count"].get<std::uint64_t>();
    accesses += count;
    if (row["size"] > 8) longer += count;
  }
  ASSERT_GT(longer, 0u);
  std::map<std::string, std::uint64_t> values;
  for (const auto& row : found["power"]["lines"]) values[row["lines"]] = row["values"];
  EXPECT_EQ(values["data_address"], accesses);
  EXPECT_EQ(values["data"], accesses - longer);
}

TEST_F(SharedCaptures, InstructionsAreCountedAsInTheGoldenStream) {
  for (const auto& [name, to] : {std::pair{"lin_user_tiny", 50'000},
                                 {"bios486_tiny", 50'000},
                                 {"lin_procs_small", 100'000}}) {
    SCOPED_TRACE(name);
    const auto n = static_cast<std::uint64_t>(to);
    std::set<std::pair<std::uint32_t, std::string>> different;
    std::uint64_t executions = 0, completed = 0;
    for (const StartedCode& s : started(golden_records(name, n), n)) {
      if (!s.completed && s.done == 0) continue;
      different.emplace(s.linear, s.code);
      ++executions;
      completed += s.completed ? 1 : 0;
    }
    const ordered_json found = ask(import(name, 'B'), {{"count"}, 0, n})["tools"]["count"];
    EXPECT_EQ(found["executions"], executions);
    EXPECT_EQ(found["instructions"], completed);
    EXPECT_EQ(found["static_instructions"], different.size());
    std::uint64_t mixed = 0;
    for (const auto& row : found["mix"]) mixed += row["count"].get<std::uint64_t>();
    EXPECT_EQ(mixed, executions);
  }
}

TEST_F(SharedCaptures, AccessesAreCountedAsInTheGoldenStream) {
  for (const char* const name : {"lin_user_tiny", "bios486_tiny"}) {
    SCOPED_TRACE(name);
    std::uint64_t read_bytes = 0, written_bytes = 0;
    std::set<std::uint32_t> written;
    for (const NarrowRecord& r : golden_records(name, kWhole)) {
      if (r.kind() != 2 || r.bytes[3] != 0) continue;
      (r.bytes[2] == 1 ? written_bytes : read_bytes) += r.bytes[1];
      for (std::uint32_t i = 0; r.bytes[2] == 1 && i < r.bytes[1]; ++i)
        written.insert(r.u32(8) + i);
    }
    const ordered_json found = ask(import(name, 'A'), {{"memory", "footprint"}})["tools"];
    std::uint64_t reads = 0, writes = 0;
    for (const auto& row : found["memory"]["kinds"]) {
      if (row["kind"] == "page walk") continue;
      (row["direction"] == "write" ? writes : reads) +=
          row["size"].get<std::uint64_t>() * row["count"].get<std::uint64_t>();
    }
    EXPECT_EQ(writes, written_bytes);
    EXPECT_EQ(reads, read_bytes);
  }
}

TEST_F(SharedCaptures, TheModelledCacheFillsTheLinesThatTheBusShows) {
  for (const char* const name : {"lin_user_tiny", "lin_kentry_tiny", "p3_post_tiny"}) {
    SCOPED_TRACE(name);
    constexpr std::uint8_t kCodeRead = 1, kLine = 1;
    std::uint64_t code = 0, data = 0;
    for (const MonitorRecord& r : MachineData(machine_folder() + "/" + name).records('B')) {
      if ((r.flags & kLine) == 0) continue;
      ++(r.type == kCodeRead ? code : data);
    }
    const ordered_json all = ask(import(name, 'B'), {{"cache:model=i486", "count"}})["tools"];
    const ordered_json& found = all["cache"];
    EXPECT_EQ(found["code"]["fills"], code);
    EXPECT_EQ(found["data"]["fills"], data);
    EXPECT_GE(found["code"]["references"], all["count"]["executions"]);
  }
}

/// Every tool, with the options that it needs.
std::vector<std::string> all_tools(bool merging) {
  std::vector<std::string> requests;
  for (const tools::ToolRow* tool : tools::tool_list()) {
    if (merging && tool->merging == tools::ToolRow::Merging::serial) continue;
    const std::string name = tool->name;
    if (name == "watch") {
      requests.push_back("watch:at=c0000000-ffffffff,reads");
    } else if (name == "mdl") {
      requests.push_back("mdl:metric=cpu@/Code/*/*+systemCalls@/Syscall/*");
    } else {
      requests.push_back(name);
    }
  }
  return requests;
}

void expect_the_same_by_blocks(const ImportedRecording& imported, std::uint64_t to,
                               const std::string& by) {
  for (const std::string& tool : all_tools(false)) {
    SCOPED_TRACE(tool);
    EXPECT_EQ(ask(imported, {{tool}, 0, to, ExecutionPath::blocks, "", by}),
              ask(imported, {{tool}, 0, to, ExecutionPath::instructions, "", by}));
  }
}

TEST_F(SharedCaptures, ToolsFindTheSameByBlocksAndByInstructions) {
  expect_the_same_by_blocks(import("lin_user_tiny", 'B'), kWhole, "");
  expect_the_same_by_blocks(import("lin_kentry_tiny", 'B'), kWhole, "");
}

/// Where each level has tools of its own, what surrounds an entry or a return must be told to the
/// right one.
TEST_F(SharedCaptures, ToolsFindTheSameOfALevelByBlocksAndByInstructions) {
  expect_the_same_by_blocks(import("lin_user_tiny", 'B'), 20'000, "level");
}

TEST_F(SharedCaptures, ToolsFindTheSameOfLongModeByBlocksAndByInstructions) {
  if (machine64_folder().empty()) GTEST_SKIP() << "shared/data/machine64 is not there";
  expect_the_same_by_blocks(import_wide("k64_procs_tiny", 'B'), 30'000, "level");
  expect_the_same_by_blocks(import_wide("k64_lme_tiny", 'A'), kWhole, "");
}

TEST_F(SharedCaptures, PartsPutTogetherAreTheWholeWhereverTheyAreCut) {
  const ImportedRecording imported = import("lin_user_tiny", 'B');
  const std::vector<std::string> requests = all_tools(true);
  const ordered_json whole = ask(imported, {requests})["tools"];
  std::mt19937 random(20251125);
  std::vector<std::uint64_t> cuts = {0, kWhole};
  for (int i = 0; i < 6; ++i) cuts.push_back(1 + random() % 49'998);
  std::sort(cuts.begin(), cuts.end());
  std::unique_ptr<tools::Analysis> all;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const auto part = tell(imported, {requests, cuts[i], cuts[i + 1]}, i == 0);
    ByteWriter state;
    part.analysis->save(state);
    tools::Setup setup;
    setup.machine = tools::MachineFacts::of(imported.recording);
    setup.begins = i == 0;
    std::vector<tools::ToolOptions> again;
    for (const std::string& r : requests) again.push_back(tools::ToolOptions::parse(r));
    auto loaded = std::make_unique<tools::Analysis>(tools::find_tools(std::move(again)), setup,
                                                    std::vector<tools::Split>{});
    ByteReader in(state.view(), "state");
    loaded->load(in);
    if (all == nullptr) {
      all = std::move(loaded);
    } else {
      all->follow(std::move(*loaded));
    }
  }
  const ordered_json together = json_of(*all)["tools"];
  EXPECT_EQ(together.size(), whole.size());
  for (const auto& [tool, result] : whole.items()) EXPECT_EQ(together[tool], result) << tool;
}

TEST_F(SharedCaptures, WhatIsSplitAddsUpToTheWhole) {
  const ImportedRecording imported = import("lin_user_tiny", 'B');
  const std::uint64_t whole = ask(imported, {{"count"}})["tools"]["count"]["executions"];
  std::uint64_t sum = 0;
  const ordered_json split =
      ask(imported, {{"count"}, 0, kWhole, ExecutionPath::blocks, "", "process,level"});
  for (const auto& group : split["groups"]) {
    sum += group["tools"]["count"]["executions"].get<std::uint64_t>();
  }
  EXPECT_EQ(sum, whole);
  const auto where = [&](const std::string& scope) {
    return ask(imported,
               {{"count"}, 0, kWhole, ExecutionPath::blocks, scope})["tools"]["count"]["executions"]
        .get<std::uint64_t>();
  };
  EXPECT_EQ(where("level=3") + where("!level=3"), whole);
  EXPECT_EQ(where("interrupt") + where("!interrupt"), whole);
  EXPECT_EQ(where("code=c0000000-fffffffe") + where("!code=c0000000-fffffffe"), whole);
  EXPECT_GT(where("level=3"), 0u);
}

TEST_F(SharedCaptures, TheLevelIsThatOfTheGoldenStreamsCodeSegment) {
  const char* const name = "lin_user_tiny";
  std::uint64_t user = 0;
  for (const NarrowRecord& r : golden_records(name, kWhole)) {
    if (r.kind() == 1 && (r.bytes[2] & 3) == 3) ++user;
  }
  // Those that were refused first are started twice.
  std::uint64_t refused = 0;
  for (const StartedCode& s : started(golden_records(name, kWhole), 50'000)) {
    refused += !s.completed && s.done == 0 && s.linear < 0xc0000000 ? 1 : 0;
  }
  const ordered_json found =
      ask(import(name, 'B'),
          {{"count"}, 0, kWhole, ExecutionPath::blocks, "level=3"})["tools"]["count"];
  EXPECT_EQ(found["executions"].get<std::uint64_t>(), user - refused);
}

}  // namespace
}  // namespace citcat::test
