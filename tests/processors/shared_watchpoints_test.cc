// Watchpoints in a capture of two processors that write the same words: each write is reported, by
// the processor that made it, in the order that an independent simulator gives. Where the data is
// not there (set CITCAT_SHARED), nothing runs.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "golden/dap_client.h"
#include "golden/process.h"
#include "processors/shared_stream.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using citcat::testing::DapClient;

/// Processor, and the number of the instruction that writes.
using Write = std::pair<std::size_t, std::uint64_t>;

constexpr std::size_t kMostStops = 40;

/// By linear address, the writes of words of four bytes that both make.
std::map<std::uint64_t, std::vector<Write>> contended_words(
    const std::vector<SharedStreamRecord>& stream) {
  std::map<std::uint64_t, std::vector<Write>> all;
  for (const SharedStreamRecord& r : stream) {
    const bool writes_word = r.is_access() && r.a == 4 && r.b == 1 && r.c == 0 && r.linear != 0;
    if (!writes_word) continue;
    std::vector<Write>& its = all[r.linear];
    const Write write{r.processor(), r.instruction};
    if (its.empty() || its.back() != write) its.push_back(write);
  }
  std::erase_if(all, [](const auto& word) {
    const auto& its = word.second;
    const auto other = [&](const Write& w) { return w.first != its.front().first; };
    return its.size() < kMostStops || std::none_of(its.begin(), its.end(), other);
  });
  return all;
}

/// How often the next write is the other's.
std::size_t turns_of(const std::vector<Write>& writes) {
  std::size_t turns = 0;
  for (std::size_t i = 1; i < writes.size(); ++i)
    turns += writes[i].first != writes[i - 1].first ? 1 : 0;
  return turns;
}

class SharedWatchpoints : public TemporaryFolder {
 protected:
  void import(const MachineData& data) const {
    const auto result = citcat::testing::run_citcat(
        {"import", data.path("busA.bin.zst"), "--internal", "0=" + data.path("side.0.csv.zst"),
         "--internal", "1=" + data.path("side.1.csv.zst"), "-o", "two.citcat", "-q"},
        path(""));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  /// Where a processor stands: the position that the editor shows for its thread.
  static std::uint64_t position(DapClient& editor, int thread) {
    const DapClient::Json frame =
        editor.body("stackTrace", {{"threadId", thread}, {"levels", 1}}).at("stackFrames").at(0);
    const DapClient::Json scopes =
        editor.body("scopes", {{"frameId", frame.at("id")}}).at("scopes");
    for (const DapClient::Json& scope : scopes) {
      const DapClient::Json variables =
          editor.body("variables", {{"variablesReference", scope.at("variablesReference")}});
      for (const DapClient::Json& v : variables.at("variables"))
        if (v.at("name") == "position") return std::stoull(v.at("value").get<std::string>());
    }
    return ~std::uint64_t{0};
  }
};

TEST_F(SharedWatchpoints, AreMetByWhoeverWritesInTheOrderOfTheBus) {
  const std::string folder = shared_file("smp/smp_spin64_tiny");
  if (folder.empty()) GTEST_SKIP() << "no ../shared/data/smp/smp_spin64_tiny (set CITCAT_SHARED)";
  const MachineData data(folder);
  ASSERT_NO_FATAL_FAILURE(import(data));
  const auto words = contended_words(read_shared_stream(data.path("golden.bin.zst")));
  ASSERT_FALSE(words.empty());
  const auto& [address, all_writes] = *std::max_element(
      words.begin(), words.end(),
      [](const auto& a, const auto& b) { return turns_of(a.second) < turns_of(b.second); });
  // The first is of a REP that clears the word, and goes on.
  const std::vector<Write> writes(all_writes.begin() + 1, all_writes.end());
  ASSERT_GE(writes.size(), kMostStops);
  const std::string start = fmt::format("{}:{}", writes[0].first, writes[0].second);
  DapClient editor({"two.citcat", "--unchecked", "--at", start}, path(""));
  editor.body("initialize", {{"adapterID", "citcat"}});
  editor.body("launch", DapClient::Json::object());
  editor.event("initialized");
  editor.body("setDataBreakpoints",
              {{"breakpoints", DapClient::Json::array({{{"dataId", fmt::format("{:#x}/4", address)},
                                                        {"accessType", "write"}}})}});
  editor.body("configurationDone");
  editor.event("stopped");
  std::vector<Write> met;
  while (met.size() < kMostStops) {
    const DapClient::Json stopped = editor.move("continue");
    if (stopped.at("reason") != "data breakpoint") break;
    const int thread = stopped.at("threadId").get<int>();
    met.emplace_back(thread - 1, position(editor, thread) - 1);
  }
  ASSERT_EQ(met.size(), kMostStops);
  EXPECT_EQ(met, std::vector<Write>(writes.begin(), writes.begin() + kMostStops));
}

}  // namespace
}  // namespace citcat::test
