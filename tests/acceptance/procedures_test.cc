// Instructions and calls of procedures, as tools report them, against a decoding of the golden
// streams that shares no code with them.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "acceptance/machine_run.h"
#include "events/names/symbols.h"
#include "formats/io/input.h"
#include "tools/guest/guest_names.h"
#include "tools/host/analysis.h"
#include "tools/host/report_renderers.h"
#include "tools/host/tool_host.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"

namespace citcat::test {
namespace {

/// The first instructions of a capture, each where it completed, as data/machine/FORMAT.md, section
/// 5, has them; and where each call went.
struct GoldenProcedures {
  std::vector<std::uint32_t> instructions;       ///< linear addresses, by number
  std::map<std::uint32_t, std::uint64_t> calls;  ///< by linear address of what was called

  GoldenProcedures(const std::string& name, std::uint64_t to) {
    InputStream in(machine_folder() + "/" + name + "/golden.bin.zst");
    std::array<std::uint8_t, 40> record;
    bool called = false;
    while (in.read(record) == record.size()) {
      std::uint64_t number = 0;
      std::uint32_t eip = 0, linear = 0;
      std::memcpy(&number, &record[32], 8);
      std::memcpy(&linear, &record[8], 4);
      // An event between a call and what it called names that; code is flat in these captures.
      std::memcpy(&eip, &record[8], 4);
      if (record[0] == 3 && called) {
        ++calls[eip];
        called = false;
      }
      if (record[0] != 1) continue;
      if (number >= to) return;
      if (called) ++calls[linear];
      called = is_call(&record[16]);
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

class Procedures : public ::testing::TestWithParam<MachineCapture> {
 protected:
  static constexpr std::uint64_t kTo = 50000;

  nlohmann::ordered_json ask(const std::string& tool, const Symbols& symbols) {
    const ImportedRecording imported = import_machine(GetParam(), IgnoreCounts::none);
    tools::GuestNames names(symbols);
    tools::Setup setup;
    setup.recording = &imported.recording;
    setup.machine = tools::MachineFacts::of(imported.recording);
    setup.names = &names;
    std::vector<tools::ToolOptions> requests{tools::ToolOptions::parse(tool)};
    tools::Analysis analysis(std::move(requests), setup, {});
    tools::HostOptions options;
    options.to = kTo;
    options.names = &names;
    tools::ToolHost host(analysis, options);
    ReplayOptions replay;
    replay.evidence = [&imported] { return imported.read_evidence(); };
    replay.to = kTo;
    Replayer replayer(imported.recording, Listeners(&host), replay);
    EXPECT_NE(replayer.run().end, ReplayReport::End::diverged);
    host.finish();
    tools::Report report;
    analysis.report(report);
    return tools::report_json(report)["tools"].front();
  }
};

TEST_P(Procedures, HaveTheInstructionsThatLieInThem) {
  if (shared_file("machine/" + GetParam().name).empty()) {
    GTEST_SKIP() << capture_text(GetParam()) << " is not there (set CITCAT_SHARED)";
  }
  const GoldenProcedures golden(GetParam().name, kTo);
  // Whatever was called is a symbol, and goes on to the next one or to the end of its page.
  SymbolModule module{"code", "", {}};
  for (const auto& [address, count] : golden.calls) {
    module.symbols.push_back({"p" + std::to_string(address), LinearAddr{address}, 0,
                              SymbolKind::code, SymbolBinding::global});
  }
  std::map<std::string, std::uint64_t> expected;
  for (const std::uint32_t linear : golden.instructions) {
    const auto next = golden.calls.upper_bound(linear);
    if (next == golden.calls.begin()) continue;
    const std::uint32_t procedure = std::prev(next)->first;
    if (next == golden.calls.end() && linear > (procedure | 0xfff)) continue;
    ++expected["p" + std::to_string(procedure)];
  }
  const auto json = ask("func:procedures=100000", Symbols({module}));
  EXPECT_EQ(json["instructions"], golden.instructions.size());
  std::map<std::string, std::uint64_t> found;
  for (const auto& row : json["procedures_by_instructions"]) {
    if (row["module"] == "code" && row["own"] != 0) found[row["procedure"]] = row["own"];
  }
  EXPECT_EQ(found, expected);
}

TEST_P(Procedures, AreCalledAsOftenAsTheMachineCalledThem) {
  if (shared_file("machine/" + GetParam().name).empty()) {
    GTEST_SKIP() << capture_text(GetParam()) << " is not there (set CITCAT_SHARED)";
  }
  const GoldenProcedures golden(GetParam().name, kTo);
  const auto json = ask("calls:arcs=100000", Symbols());
  std::map<std::uint32_t, std::uint64_t> found;
  for (const auto& row : json["arcs_by_calls"]) {
    found[static_cast<std::uint32_t>(std::stoul(row["procedure"].get<std::string>(), nullptr,
                                                16))] += row["calls"].get<std::uint64_t>();
  }
  EXPECT_EQ(found, golden.calls);
  EXPECT_GT(found.size(), 50u);
}

INSTANTIATE_TEST_SUITE_P(Captures, Procedures,
                         ::testing::Values(MachineCapture{"lin_user_tiny", 'B'},
                                           MachineCapture{"lin_procs_small", 'B'}),
                         [](const auto& value) { return capture_text(value.param); });

}  // namespace
}  // namespace citcat::test
