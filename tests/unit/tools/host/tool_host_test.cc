// Where the context of tools begins: with the first instruction, whatever it is that they want and
// however the machine runs.

#include "tools/host/tool_host.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "replay/session/replayer.h"
#include "tools/host/names.h"
#include "tools/host/report_renderers.h"
#include "tools/list/tool_list.h"
#include "unit/replay/machine/high_memory_guest.h"

namespace citcat::tools {
namespace {

constexpr std::uint32_t kHostedCode = 0x1000, kFirstSpace = 0x4000, kSecondSpace = 0x5000;

/// Flat 32-bit code without paging; EAX is another address space.
Recording plain_code_and(std::initializer_list<int> bytes, std::uint64_t instructions) {
  constexpr std::uint32_t kRam = 0x8000;
  Recording r;
  r.initial.model = CpuModel::i486;
  r.initial.ram_bytes = kRam;
  r.initial.cr0 = 0x11;
  r.initial.cr3 = kFirstSpace;
  r.initial.eip = kHostedCode;
  r.initial.gpr[kEax] = kSecondSpace;
  r.initial.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
  r.initial.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
  for (std::uint32_t a = 0; a < kRam; ++a) r.image.set(PhysAddr{a}, 0);
  std::uint32_t at = kHostedCode;
  for (const int b : bytes) r.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  r.instructions = instructions;
  return r;
}

nlohmann::ordered_json told(const Recording& recording, const std::vector<std::string>& tools,
                            ExecutionPath path, const std::string& where = "") {
  const NameSource names;
  const Scope scope = where.empty() ? Scope() : Scope(where, names, 0, 1);
  Setup setup;
  setup.recording = &recording;
  setup.machine = MachineFacts::of(recording);
  setup.names = &names;
  std::vector<ToolOptions> requests;
  for (const std::string& tool : tools) requests.push_back(ToolOptions::parse(tool));
  Analysis analysis(find_tools(std::move(requests)), setup, {});
  HostOptions host_options;
  if (!where.empty()) host_options.scope = &scope;
  ToolHost host(analysis, host_options);
  Listeners listeners;
  listeners.add(host);
  ReplayOptions options;
  options.path = path;
  EXPECT_NE(Replayer(recording, listeners, options).run().end, ReplayReport::End::diverged);
  host.finish();
  Report report;
  analysis.report(report);
  return report_json(report);
}

TEST(ToolHost, KnowsTheAddressSpaceThatIsLeftFirstWhereOnlyPlainCodeRanInIt) {
  const Recording recording = plain_code_and({0x90, 0x90, 0x90, 0x90,  // nop
                                              0x0f, 0x22, 0xd8,        // mov cr3,eax
                                              0x90, 0x90},
                                             7);
  // Alone; with what is told each block; with what only counts.
  const std::vector<std::vector<std::string>> requests = {
      {"switches"}, {"switches", "branches"}, {"switches", "count"}};
  for (const auto& tools : requests) {
    for (const ExecutionPath path : {ExecutionPath::instructions, ExecutionPath::blocks}) {
      SCOPED_TRACE(testing::Message() << tools.back() << static_cast<int>(path));
      const auto found = told(recording, tools, path).at("tools").at("switches");
      EXPECT_EQ(found.at("switches"), 1);
      EXPECT_EQ(found.at("list").at(0).at("from"), "00004000");
      EXPECT_EQ(found.at("list").at(0).at("to"), "00005000");
    }
  }
}

/// Real mode: code at `where`, the stack below 7000h.
Recording real_code(std::initializer_list<std::pair<std::uint32_t, std::vector<int>>> pieces,
                    std::uint64_t instructions) {
  Recording r = plain_code_and({}, instructions);
  r.initial.cr0 = 0x10;
  r.initial.segment.fill({0, 0, 0xffff, 0x93, false});
  r.initial.segment[kCs].attributes = 0x9b;
  r.initial.gpr[kEsp] = 0x7000;
  for (const auto& [where, bytes] : pieces) {
    std::uint32_t at = where;
    for (const int b : bytes) r.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  return r;
}

TEST(ToolHost, KnowsThatAFarReturnEndsAFarCall) {
  const Recording recording = real_code({{0x1000, {0x9a, 0x20, 0x10, 0, 0, 0x90}},        // call f
                                         {0x1020, {0x90, 0x9a, 0x30, 0x10, 0, 0, 0xcb}},  // f: g
                                         {0x1030, {0x90, 0xcb}}},                         // g
                                        7);
  for (const ExecutionPath path : {ExecutionPath::instructions, ExecutionPath::blocks}) {
    std::map<std::string, std::pair<int, int>> found;
    const auto tool = told(recording, {"func"}, path).at("tools").at("func");
    for (const auto& row : tool.at("procedures_by_instructions")) {
      found[row.at("address")] = {row.at("own"), row.at("with_callees")};
    }
    using Own = std::pair<int, int>;
    EXPECT_EQ(found.at("00001020"), Own(3, 5));
    EXPECT_EQ(found.at("00001030"), Own(2, 2));
  }
}

/// INT from level 3 to a handler that is nothing but IRET.
Recording handler_of_one_instruction() {
  constexpr std::uint32_t kGdt = 0x2000, kIdt = 0x2100, kTask = 0x2800, kHandler = 0x1100;
  Recording r = plain_code_and({0x90, 0xcd, 0x10, 0x90}, 4);
  const auto put = [&](std::uint32_t at, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
      r.image.set(PhysAddr{at + i}, static_cast<std::uint8_t>(value >> 8 * i));
    }
  };
  put(kGdt + 0x08, 0x00cf9b000000ffff, 8);
  put(kGdt + 0x10, 0x00cf93000000ffff, 8);
  put(kGdt + 0x18, 0x00cffb000000ffff, 8);
  put(kGdt + 0x20, 0x00cff3000000ffff, 8);
  put(kIdt + 8 * 0x10, 0x0000ee0000080000 | kHandler, 8);
  put(kTask + 4, 0x6000, 4);
  put(kTask + 8, 0x10, 2);
  put(kHandler, 0xcf, 1);
  r.initial.segment.fill({0x23, 0, 0xffffffff, 0xc0f3, false});
  r.initial.segment[kCs] = {0x1b, 0, 0xffffffff, 0xc0fb, false};
  r.initial.gpr[kEsp] = 0x7000;
  r.initial.gdtr = {kGdt, 0x27};
  r.initial.idtr = {kIdt, 0x8f};
  r.initial.tr = {0x28, kTask, 0x67, 0x8b, false};
  return r;
}

TEST(ToolHost, KnowsTheLevelOfAHandlerThatIsNothingButItsReturn) {
  const Recording recording = handler_of_one_instruction();
  for (const ExecutionPath path : {ExecutionPath::instructions, ExecutionPath::blocks}) {
    for (const auto& [where, count] : {std::pair{"level=3", 3}, {"level=0", 1}}) {
      const auto found = told(recording, {"count"}, path, where);
      EXPECT_EQ(found.at("tools").at("count").at("instructions"), count) << where;
    }
  }
}

TEST(ToolHost, TellsOnceOfTheCodeOfASoftwareInterrupt) {
  const Recording recording = handler_of_one_instruction();
  for (const ExecutionPath path : {ExecutionPath::instructions, ExecutionPath::blocks}) {
    const auto found = told(recording, {"cache"}, path).at("tools").at("cache");
    EXPECT_EQ(found.at("code").at("references"), 4) << found;
  }
}

TEST(ToolHost, KnowsTheLevelAtWhichPageTablesAreLoaded) {
  // Two loads: after the first, the level is settled by nothing that is told.
  Recording recording = plain_code_and({0x90, 0x0f, 0x22, 0xd8, 0x0f, 0x22, 0xdb}, 3);
  recording.initial.gpr[kEbx] = 0x6000;
  for (const ExecutionPath path : {ExecutionPath::instructions, ExecutionPath::blocks}) {
    const auto found = told(recording, {"switches"}, path, "level=0");
    EXPECT_EQ(found.at("tools").at("switches").at("switches"), 2);
  }
}

class ScopeInLongMode : public HighMemoryGuest {};

TEST_F(ScopeInLongMode, KnowsDataByItsWholeAddress) {
  set_register(recording_.initial, "rcx", kData);
  put(kCode, {0x48, 0x8b, 0x03,     // mov rax, [rbx]
              0x48, 0x89, 0x43, 8,  // mov [rbx + 8], rax
              0x48, 0x89, 0x01});   // mov [rcx], rax
  recording_.instructions = 3;
  const std::vector<std::pair<const char*, int>> scopes = {
      {"data=8000200000-800020000f", 2}, {"data=800020000f", 1}, {"data=8000200010", 0},
      {"data=200000-20000f", 0},         {"data=20007", 1},      {"data=8000020007", 0}};
  for (const auto& [where, count] : scopes) {
    for (const ExecutionPath path : {ExecutionPath::instructions, ExecutionPath::blocks}) {
      const auto found = told(recording_, {"count"}, path, where);
      EXPECT_EQ(found.at("tools").at("count").at("instructions"), count) << where;
    }
  }
}

}  // namespace
}  // namespace citcat::tools
