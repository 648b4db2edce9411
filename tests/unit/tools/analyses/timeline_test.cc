#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "tools/host/names.h"
#include "tools/host/tool.h"
#include "tools/list/tool_list.h"

namespace citcat::tools {
namespace {

std::unique_ptr<Tool> timeline(const Setup& setup = {}) {
  ToolOptions options = ToolOptions::parse("timeline:every=1000");
  return find_tool("timeline")->make(options, setup);
}

/// A stretch in which so many processes ran, number i for i + 1 instructions.
std::vector<std::uint8_t> stretch_of(std::uint32_t processes) {
  constexpr int kCounters = 11;
  ByteWriter out;
  out.varint(1);
  out.varint(0);
  for (int i = 0; i < kCounters; ++i) out.varint(0);
  out.varint(processes);
  for (std::uint32_t i = 0; i < processes; ++i) {
    out.varint(i << 12);
    out.varint(i + 1);
  }
  return {out.view().begin(), out.view().end()};
}

std::vector<std::uint8_t> saved(const Tool& tool) {
  ByteWriter out;
  tool.save(out);
  return {out.view().begin(), out.view().end()};
}

std::unique_ptr<Tool> loaded(const std::vector<std::uint8_t>& state) {
  auto tool = timeline();
  ByteReader in(state, "state");
  tool->load(in);
  return tool;
}

// Looking through all processes for each of them would take minutes.
TEST(Timeline, AShareWithHundredsOfThousandsOfProcessesIsReadAndPutTogether) {
  for (const std::uint32_t processes : {1u, 8u, 9u, 10u, 300'000u}) {
    const auto state = stretch_of(processes);
    const auto tool = loaded(state);
    EXPECT_EQ(saved(*tool), state);
    tool->follow(std::move(*loaded(state)));
    Report report;
    tool->report(report);
    const auto& table = std::get<Table>(report.entries().back());
    const auto& row = table.rows.at(0);
    EXPECT_EQ(std::get<std::string>(row.at(row.size() - 2)), hexadecimal((processes - 1) << 12));
    EXPECT_EQ(std::get<std::uint64_t>(row.back()), 2ull * processes);
  }
}

class NamedProcesses final : public NameSource {
 public:
  bool names_processes() const override { return true; }
};

TEST(Timeline, IsNotPutTogetherWhereAPartDoesNotKnowWhatProcessesAreCalled) {
  EXPECT_TRUE(timeline()->merges());
  const NamedProcesses names;
  tools::Setup setup;
  setup.names = &names;
  EXPECT_FALSE(timeline(setup)->merges());
}

}  // namespace
}  // namespace citcat::tools
