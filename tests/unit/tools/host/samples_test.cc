// --sample: what is said to be exact is, whatever the windows; what is a sample is of the windows
// alone. --window: both paths of the replay tell the same in a window.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/error.h"
#include "replay/session/replayer.h"
#include "tools/host/names.h"
#include "tools/host/report_renderers.h"
#include "tools/host/tool_host.h"
#include "tools/list/tool_list.h"
#include "unit/replay/machine/random_guest.h"

namespace citcat::tools {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kExactTools = {"count:blocks=40,listing=200",
                                              "timeline:stretches=64",
                                              "moments:edge=100,around=24,places=4",
                                              "events",
                                              "switches",
                                              "io"};
const std::vector<std::string> kSampledTools = {
    "func:procedures=50,paths=50", "map:regions=64",      "reuse:line=16", "cache:bytes=1k",
    "tlb:entries=16+32",           "bpred:entries=64+256"};

Json report_of(const Recording& recording, std::vector<ToolOptions> tools, const Setup& setup,
               const HostOptions& host_options, ExecutionPath path) {
  Analysis analysis(find_tools(std::move(tools)), setup, {});
  ToolHost host(analysis, host_options);
  Listeners listeners;
  listeners.add(host);
  ReplayOptions options;
  options.path = path;
  Replayer replayer(recording, listeners, options);
  replayer.run();
  host.finish();
  Report report;
  analysis.report(report);
  return report_json(report).at("tools");
}

Json sampled_report(const Recording& recording, const std::vector<std::string>& tools,
                    const std::string& sample, ExecutionPath path = ExecutionPath::blocks) {
  const NameSource names;
  Setup setup;
  setup.recording = &recording;
  setup.machine = MachineFacts::of(recording);
  setup.names = &names;
  setup.sampled = !sample.empty();
  std::vector<ToolOptions> requests;
  for (const std::string& tool : tools) requests.push_back(ToolOptions::parse(tool));
  std::optional<WindowPlan> plan;
  HostOptions host_options;
  if (!sample.empty()) {
    plan = WindowPlan::parse_sample(sample, *recording.instructions, names);
    host_options.samples = &*plan;
  }
  return report_of(recording, std::move(requests), setup, host_options, path);
}

std::vector<std::string> all_tools() {
  std::vector<std::string> all = kExactTools;
  all.insert(all.end(), kSampledTools.begin(), kSampledTools.end());
  return all;
}

constexpr std::uint64_t kLength = 10'000;

TEST(Samples, LeaveExactWhatIsSaidToBe) {
  for (const GuestMode mode : kGuestModes) {
    const Recording recording = long_random_guest(mode, kLength);
    std::vector<std::string> told_all = kExactTools;
    told_all.emplace_back("null:wants=executions");
    const Json exact = sampled_report(recording, told_all, "");
    for (const char* const sample :
         {"every 1000 for 50, warm 30", "every 777 for 1", "random 20 of 100 seed 3", "none"}) {
      for (const ExecutionPath path : {ExecutionPath::blocks, ExecutionPath::instructions}) {
        const Json sampled = sampled_report(recording, all_tools(), sample, path);
        for (const std::string& request : kExactTools) {
          const std::string tool = request.substr(0, request.find(':'));
          EXPECT_EQ(sampled.at(tool), exact.at(tool))
              << guest_mode_name(mode) << " " << sample << " " << tool;
        }
      }
    }
  }
}

/// What a tool has counted of all accesses but walks: where code goes on in the next page the
/// engine walks to it a few instructions earlier.
Json without_walks(const Json& memory) {
  Json kinds = Json::array();
  for (const Json& row : memory.at("kinds")) {
    if (row.at("kind") != "page walk") kinds.push_back(row);
  }
  return kinds;
}

TEST(Windows, HearTheSameByBlocksAndByInstructions) {
  const NameSource names;
  const WindowPlan plan = WindowPlan::parse("every 500 for 20", kLength, names);
  HostOptions host_options;
  host_options.windows = &plan;
  for (const GuestMode mode : kGuestModes) {
    const Recording recording = long_random_guest(mode, kLength);
    tools::Setup setup;
    setup.recording = &recording;
    setup.machine = MachineFacts::of(recording);
    setup.names = &names;
    const auto heard = [&](ExecutionPath path) {
      return report_of(recording, {ToolOptions::parse("memory")}, setup, host_options, path);
    };
    const Json blocks = heard(ExecutionPath::blocks).at("memory"),
               instructions = heard(ExecutionPath::instructions).at("memory");
    EXPECT_EQ(without_walks(blocks), without_walks(instructions)) << guest_mode_name(mode);
    EXPECT_FALSE(without_walks(blocks).empty()) << guest_mode_name(mode);
  }
}

TEST(Samples, LeaveExactOfTheMapWhatIsKnownWithoutEachAccess) {
  for (const GuestMode mode : kGuestModes) {
    const Recording recording = long_random_guest(mode, kLength);
    const Json exact = sampled_report(recording, {"map"}, "").at("map");
    const Json sampled =
        sampled_report(recording, {"map", "count"}, "every 1000 for 50, warm 30").at("map");
    EXPECT_EQ(sampled.at("pages"), exact.at("pages")) << guest_mode_name(mode);
    ASSERT_EQ(sampled.at("regions").size(), exact.at("regions").size());
    for (std::size_t i = 0; i < exact.at("regions").size(); ++i) {
      const Json &is = sampled.at("regions")[i], &was = exact.at("regions")[i];
      for (const char* const key : {"address", "image_bytes", "code_bytes", "external_writes",
                                    "external_bytes", "device"}) {
        EXPECT_EQ(is.at(key), was.at(key)) << guest_mode_name(mode) << " " << was.at("address");
      }
      const bool written = was.at("writes") != 0 || was.at("external_writes") != 0;
      EXPECT_TRUE(!written || is.at("changed") == "yes") << was.at("address");
      EXPECT_LE(is.at("reads"), was.at("reads"));
    }
  }
}

TEST(Samples, AreTheWholeRunWhereTheWindowsAre) {
  const Recording recording = long_random_guest(GuestMode::flat, kLength);
  const Json exact = sampled_report(recording, kSampledTools, "");
  Json sampled = sampled_report(recording, all_tools(), "every 1000 for 1000");
  for (Json& region : sampled.at("map").at("regions")) region.erase("changed");
  for (const std::string& request : kSampledTools) {
    const std::string tool = request.substr(0, request.find(':'));
    EXPECT_EQ(sampled.at(tool), exact.at(tool)) << tool;
  }
}

TEST(Samples, CountTheInstructionsOfTheirWindowsAlone) {
  const Recording recording = long_random_guest(GuestMode::flat, kLength);
  const NameSource names;
  const WindowPlan plan = WindowPlan::parse_sample("every 1000 for 50, warm 30", kLength, names);
  const WindowPlan::Share share = plan.share(0, kLength);
  EXPECT_EQ(share.windows, kLength / 1000);
  EXPECT_EQ(share.instructions, kLength / 20);
  EXPECT_EQ(share.warming, (kLength / 1000 - 1) * 30 + 30);
  // A REP that an interrupt cuts in two begins twice, and is taken back once.
  const Json sampled = sampled_report(recording, all_tools(), "every 1000 for 50, warm 30");
  EXPECT_EQ(sampled.at("func").at("instructions"), share.instructions);
  EXPECT_EQ(sampled.at("count").at("instructions"), kLength);
}

TEST(Samples, AreWindowsOfInstructionsDecidedBeforehand) {
  const NameSource names;
  EXPECT_THROW(WindowPlan::parse_sample("every 10 calls for 2 calls", 100, names), UsageError);
  EXPECT_THROW(WindowPlan::parse_sample("control:pipe", 100, names), UsageError);
  EXPECT_EQ(WindowPlan::parse_sample("none", 100, names).share(0, 100).instructions, 0u);
  EXPECT_EQ(WindowPlan::parse_sample("20-30, 50-", 100, names).share(25, 100).instructions, 55u);
}

}  // namespace
}  // namespace citcat::tools
