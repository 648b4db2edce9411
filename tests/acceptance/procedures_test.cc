// Instructions and calls of procedures, as tools report them, against a decoding of the golden
// streams that shares no code with them.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "acceptance/machine_run.h"
#include "events/names/symbols.h"
#include "formats/io/input.h"
#include "tools/guest/guest_names.h"
#include "tools/host/analysis.h"
#include "tools/host/report_renderers.h"
#include "tools/host/tool_host.h"
#include "tools/list/tool_list.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

bool is_wide(const std::string& name) { return name.starts_with("k64_"); }

/// The first instructions of a capture, each where it completed, as data/machine/FORMAT.md, section
/// 5, and data/machine64/FORMAT64.md have them; and where each call went.
struct GoldenProcedures {
  std::vector<std::uint64_t> instructions;       ///< linear addresses, by number
  std::map<std::uint64_t, std::uint64_t> calls;  ///< by linear address of what was called

  GoldenProcedures(const std::string& name, std::uint64_t to) {
    const bool wide = is_wide(name);
    InputStream in((wide ? machine64_folder() : machine_folder()) + "/" + name + "/golden.bin.zst");
    std::array<std::uint8_t, 64> bytes{};
    const std::span<std::uint8_t> record(bytes.data(), wide ? 64 : 40);
    const std::size_t number_at = wide ? 16 : 32, code_at = wide ? 24 : 16;
    bool called = false;
    while (in.read(record) == record.size()) {
      std::uint64_t number = 0, linear = 0;
      std::memcpy(&number, &record[number_at], 8);
      std::memcpy(&linear, &record[8], wide ? 8 : 4);
      // An event between a call and what it called names that; code is flat in these captures.
      if (record[0] == 3 && called) {
        ++calls[linear];
        called = false;
      }
      if (record[0] != 1) continue;
      if (number >= to) return;
      if (called) ++calls[linear];
      called = is_call(&record[code_at]);
      instructions.resize(number + 1);
      instructions[number] = linear;
    }
  }
  static bool is_call(const std::uint8_t* code) {
    while (*code == 0x2e || *code == 0x3e || *code == 0x65 || *code == 0x64 || *code == 0x66)
      ++code;
    return *code == 0xe8 || (*code == 0xff && (code[1] >> 3 & 7) == 2);
  }
};

class Procedures : public TemporaryFolder, public ::testing::WithParamInterface<MachineCapture> {
 protected:
  static constexpr std::uint64_t kTo = 50000;

  nlohmann::ordered_json ask(const std::string& tool, const Symbols& symbols) {
    return ask_all({tool}, symbols, kTo).front();
  }
  static nlohmann::ordered_json ask_all(const std::vector<std::string>& asked,
                                        const Symbols& symbols, std::uint64_t to) {
    const ImportedRecording imported = is_wide(GetParam().name)
                                           ? import_machine64(GetParam(), IgnoreCounts::none)
                                           : import_machine(GetParam(), IgnoreCounts::none);
    tools::GuestNames names(symbols);
    tools::Setup setup;
    setup.recording = &imported.recording;
    setup.machine = tools::MachineFacts::of(imported.recording);
    setup.names = &names;
    std::vector<tools::ToolOptions> requests;
    for (const std::string& tool : asked) requests.push_back(tools::ToolOptions::parse(tool));
    tools::Analysis analysis(tools::find_tools(std::move(requests)), setup, {});
    tools::HostOptions options;
    options.to = to;
    options.names = &names;
    tools::ToolHost host(analysis, options);
    ReplayOptions replay;
    replay.evidence = [&imported] { return imported.read_evidence(); };
    replay.to = to;
    Replayer replayer(imported.recording, Listeners(&host), replay);
    EXPECT_NE(replayer.run().end, ReplayReport::End::diverged);
    host.finish();
    tools::Report report;
    analysis.report(report);
    return tools::report_json(report)["tools"];
  }
  void SetUp() override {
    const char* const folder = is_wide(GetParam().name) ? "machine64/" : "machine/";
    if (shared_file(folder + GetParam().name).empty()) {
      GTEST_SKIP() << capture_text(GetParam()) << " is not there (set CITCAT_SHARED)";
    }
  }
};

using Shares = std::map<std::string, std::uint64_t>;  ///< instructions, by procedure

Shares shares_of_func(const nlohmann::ordered_json& func) {
  Shares shares;
  for (const auto& row : func["procedures_by_instructions"]) {
    if (row["own"] != 0) shares[row["procedure"]] += row["own"].get<std::uint64_t>();
  }
  return shares;
}

Shares shares_of_folded(const std::string& path) {
  Shares shares;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.rfind(' '), leaf = line.rfind(';', blank) + 1;
    shares[line.substr(leaf, blank - leaf)] += std::stoull(line.substr(blank + 1));
  }
  return shares;
}

class EveryCapture : public Procedures {};

/// Names what differs alone.
void expect_same(const Shares& found, const Shares& expected) {
  for (const auto& [name, instructions] : expected) {
    const auto there = found.find(name);
    EXPECT_EQ(there != found.end() ? there->second : 0, instructions) << name;
  }
  for (const auto& [name, instructions] : found) {
    EXPECT_TRUE(expected.contains(name)) << name << " has " << instructions;
  }
}

/// Whatever was called is a symbol, and each page that has none before what ran there begins with
/// one: all code has a name, and reaches up to the next one.
TEST_P(EveryCapture, ProceduresHaveTheInstructionsThatLieInThem) {
  const GoldenProcedures golden(GetParam().name, kTo);
  std::set<std::uint64_t> begins;
  for (const auto& [address, count] : golden.calls) begins.insert(address);
  for (const std::uint64_t linear : golden.instructions) {
    const auto next = begins.upper_bound(linear);
    const std::uint64_t page = linear & ~std::uint64_t{0xfff};
    if (next == begins.begin() || *std::prev(next) < page) begins.insert(page);
  }
  SymbolModule module{"code", "", {}};
  for (const std::uint64_t begin : begins) {
    module.symbols.push_back({"p" + std::to_string(begin), LinearAddr{begin}, 0, SymbolKind::code,
                              SymbolBinding::global});
  }
  const auto folded = path("run.folded");
  const auto json = ask_all({"func:procedures=100000", "folded:to=" + folded}, Symbols({module}),
                            golden.instructions.size());
  // The evidence may end a little before.
  const std::uint64_t told = json["func"]["instructions"];
  EXPECT_GT(told + 1000, golden.instructions.size());
  Shares expected;
  for (std::uint64_t i = 0; i < told; ++i) {
    ++expected["p" + std::to_string(*std::prev(begins.upper_bound(golden.instructions[i])))];
  }
  expect_same(shares_of_func(json["func"]), expected);
  expect_same(shares_of_folded(folded), expected);
}

/// Without symbols too: of the whole run, with its switches of tasks.
TEST_P(EveryCapture, ProceduresHaveTheSameInstructionsInEveryTool) {
  const auto folded = path("run.folded");
  constexpr std::uint64_t kMost = 3'000'000;
  const auto json = ask_all({"func:procedures=100000", "tree:paths=1000000", "folded:to=" + folded},
                            Symbols(), kMost);
  const Shares func = shares_of_func(json["func"]);
  expect_same(shares_of_folded(folded), func);
  Shares tree;
  for (const auto& row : json["tree"]["tree"]) {
    if (row["own"] != 0) tree[row["procedure"]] += row["own"].get<std::uint64_t>();
  }
  expect_same(tree, func);
}

TEST_P(Procedures, AreCalledAsOftenAsTheMachineCalledThem) {
  const GoldenProcedures golden(GetParam().name, kTo);
  const auto json = ask("calls:arcs=100000", Symbols());
  std::map<std::uint64_t, std::uint64_t> found;
  for (const auto& row : json["arcs_by_calls"]) {
    found[std::stoull(row["procedure"].get<std::string>(), nullptr, 16)] +=
        row["calls"].get<std::uint64_t>();
  }
  EXPECT_EQ(found, golden.calls);
  EXPECT_GT(found.size(), 50u);
}

// ---- procedures that are nothing but called ----------------------------------------------------

/// Which procedures of a golden stream of the kernel are entered by calls and left by returns
/// alone, each by the place that the other one used; and how often their instructions completed.
/// What jumps to another procedure's code, runs on into it, or began before the stream did is left
/// out.
class ClosedProcedures {
 public:
  ClosedProcedures(const std::string& name, std::uint64_t to) {
    read(name, to);
    for (const Step& s : steps_) {
      if (s.begins) begins_.insert(s.linear);
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) follow(i);
  }
  std::map<std::uint32_t, std::uint64_t> executed() const {
    std::map<std::uint32_t, std::uint64_t> closed;
    for (const auto& [begin, count] : executed_) {
      if (begin >= kKernel && !open_.contains(begin)) closed[begin] = count;
    }
    return closed;
  }

 private:
  static constexpr std::uint32_t kKernel = 0xc0000000;
  enum class Kind : std::uint8_t { plain, call, back, leaves };
  struct Step {
    std::uint32_t linear = 0, behind = 0, slot = 0;
    Kind kind = Kind::plain;
    bool completed = false;
    bool begins = false;     ///< called, or first in a handler
    bool delivered = false;  ///< something was delivered behind it
  };

  static Kind kind_of(const std::uint8_t* code) {
    if (GoldenProcedures::is_call(code)) return Kind::call;
    while (*code == 0x2e || *code == 0x3e || *code == 0x65 || *code == 0x64 || *code == 0x66 ||
           *code == 0xf3) {
      ++code;
    }
    if (*code == 0xc2 || *code == 0xc3) return Kind::back;
    // IRET; SYSENTER and SYSEXIT.
    const bool leaves = *code == 0xcf || (*code == 0x0f && (code[1] == 0x34 || code[1] == 0x35));
    return leaves ? Kind::leaves : Kind::plain;
  }

  void read(const std::string& name, std::uint64_t to) {
    InputStream in(machine_folder() + "/" + name + "/golden.bin.zst");
    std::array<std::uint8_t, 40> record;
    std::uint64_t last = ~std::uint64_t{0};
    while (in.read(record) == record.size()) {
      const auto u32 = [&](std::size_t at) {
        std::uint32_t value = 0;
        std::memcpy(&value, &record[at], 4);
        return value;
      };
      std::uint64_t number = 0;
      std::memcpy(&number, &record[32], 8);
      if (record[0] == 1) {
        if (!steps_.empty()) steps_.back().completed = number > last;
        if (number >= to) return;
        last = number;
        const bool begins =
            !steps_.empty() && (steps_.back().delivered || steps_.back().kind == Kind::call ||
                                steps_.back().kind == Kind::leaves);
        steps_.push_back(
            {u32(8), u32(8) + record[1], 0, kind_of(&record[16]), false, begins, false});
      } else if (record[0] == 2 && record[3] == 0 && !steps_.empty()) {
        // What is pushed and popped is accessed last of a call, first of a return.
        Step& s = steps_.back();
        const bool write = record[2] == 1;
        if (s.kind == Kind::call ? write : s.kind == Kind::back && s.slot == 0) s.slot = u32(8);
      } else if (record[0] == 3 && record[1] <= 3 && !steps_.empty()) {
        steps_.back().delivered = true;
        interrupted_.insert(u32(8));
      }
    }
  }
  std::uint32_t procedure_of(std::uint32_t linear) const {
    const auto behind = begins_.upper_bound(linear);
    return behind == begins_.begin() ? 0 : *std::prev(behind);
  }
  void follow(std::size_t i) {
    const Step& s = steps_[i];
    const std::uint32_t here = procedure_of(s.linear);
    if (i == 0) open_.insert(here);
    if (s.completed) ++executed_[here];
    if (i + 1 == steps_.size()) return;
    const Step& next = steps_[i + 1];
    const std::uint32_t there = procedure_of(next.linear);
    if (s.kind == Kind::call && s.completed) {
      called_[s.slot] = s.behind;
      return;
    }
    if (s.delivered) return;
    if (s.kind == Kind::back) {
      const auto call = called_.find(s.slot);
      if (call == called_.end() || call->second != next.linear) {
        open_.insert(here);
        open_.insert(there);
      } else {
        called_.erase(call);
      }
    } else if (s.kind == Kind::leaves) {
      if (next.linear < kKernel) return;
      // To what was interrupted, or to where a task begins.
      if (!interrupted_.contains(next.linear)) open_.insert(there);
    } else if (here != there) {
      open_.insert(here);
      open_.insert(there);
    }
  }

  std::vector<Step> steps_;
  std::set<std::uint32_t> begins_, open_, interrupted_;
  std::map<std::uint32_t, std::uint32_t> called_;  ///< by slot: where it goes on
  std::map<std::uint32_t, std::uint64_t> executed_;
};

TEST_P(Procedures, ThatAreOnlyCalledHaveAllThatRanInThem) {
  constexpr std::uint64_t kMost = 390'000;
  const auto closed = ClosedProcedures(GetParam().name, kMost).executed();
  const auto json = ask_all({"func:procedures=100000"}, Symbols(), kMost);
  std::map<std::uint32_t, std::uint64_t> own;
  for (const auto& row : json.front()["procedures_by_instructions"]) {
    const std::string address = row["address"];
    if (!address.empty())
      own[static_cast<std::uint32_t>(std::stoul(address, nullptr, 16))] = row["own"];
  }
  std::uint64_t instructions = 0;
  for (const auto& [begin, count] : closed) {
    EXPECT_EQ(own[begin], count) << std::hex << begin;
    instructions += count;
  }
  EXPECT_GT(closed.size(), 40u);
  EXPECT_GT(instructions, 4000u);
}

INSTANTIATE_TEST_SUITE_P(
    Captures, EveryCapture,
    ::testing::Values(MachineCapture{"bios486_tiny", 'B'}, MachineCapture{"bios486_small", 'C'},
                      MachineCapture{"p3_post_tiny", 'B'}, MachineCapture{"mt_start_small", 'C'},
                      MachineCapture{"lin_kentry_tiny", 'B'},
                      MachineCapture{"lin_kboot_small", 'C'},
                      MachineCapture{"lin_kboot_medium", 'C'}, MachineCapture{"lin_user_tiny", 'B'},
                      MachineCapture{"lin_user_small", 'C'}, MachineCapture{"lin_procs_small", 'B'},
                      MachineCapture{"lin_disk_small", 'C'}, MachineCapture{"lin_fpu_small", 'C'},
                      MachineCapture{"lin_rcp_tiny", 'B'}, MachineCapture{"lin_vga_medium", 'C'},
                      MachineCapture{"p4_user_tiny", 'B'}, MachineCapture{"k64_procs_tiny", 'A'},
                      MachineCapture{"k64_amd_small", 'C'}, MachineCapture{"k64_decomp_small", 'C'},
                      MachineCapture{"k64_disk_small", 'C'},
                      MachineCapture{"k64_kboot_medium", 'C'},
                      MachineCapture{"k64_kentry_small", 'C'}),
    [](const auto& value) { return capture_text(value.param); });
INSTANTIATE_TEST_SUITE_P(Captures, Procedures,
                         ::testing::Values(MachineCapture{"lin_user_tiny", 'B'},
                                           MachineCapture{"lin_procs_small", 'B'}),
                         [](const auto& value) { return capture_text(value.param); });

}  // namespace
}  // namespace citcat::test
