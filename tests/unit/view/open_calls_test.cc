// Calls are told by the stack that they are on.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "unit/debugger/watched_program.h"
#include "unit/temporary_folder.h"
#include "view/model/run_view.h"

namespace citcat::view {
namespace {

using P = test::WatchedProgram;

class OpenCalls : public test::TemporaryFolder {
 protected:
  void put(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) {
      program_.recording().image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
    }
  }
  void begin(std::uint64_t instructions) {
    program_.recording().instructions = instructions;
    program_.store(path("r.citcat"));
    file_.emplace(RecordingFile::open(path("r.citcat")));
    view_.emplace(*file_, symbols_, RunViewOptions{});
  }
  /// Where the calls that are open at instruction `at` were made.
  std::vector<std::string> open_at(std::uint64_t at) {
    std::vector<std::string> moments;
    for (const Json& call : calls_at(at)) {
      if (call["kind"] == "call") moments.push_back(call["moment"]);
    }
    return moments;
  }
  Json calls_at(std::uint64_t at) {
    return view_->answer("calls", Query({{"at", std::to_string(at)}}))["calls"];
  }
  std::string out_of(std::uint64_t at) {
    return view_->answer("move", Query({{"at", std::to_string(at)}, {"how", "out"}}))["position"];
  }

 private:
  P program_;
  std::optional<RecordingFile> file_;
  Symbols symbols_;
  std::optional<RunView> view_;
};

using Moments = std::vector<std::string>;

/// Two tasks whose stacks lie close to each other.
TEST_F(OpenCalls, ThoseOfAnotherTaskAreLeftAside) {
  constexpr std::uint32_t kSwitch = 0x7d00, kOther = 0x7d80;
  // mov ecx, 600h; mov edx, 604h; call switch; nop; call 7c20h; nop
  put(P::kBegin, {0xb9, 0, 6, 0, 0, 0xba, 4, 6, 0, 0});
  put(0x7c0a, {0xe8, 0xf1, 0, 0, 0, 0x90, 0xe8, 0x0b, 0, 0, 0, 0x90});
  put(0x7c20, {0x90, 0xe8, 0xda, 0, 0, 0, 0xc3});  // nop; call switch; ret
  // push ebx; mov [ecx], esp; mov esp, [edx]; pop ebx; xchg ecx, edx; ret
  put(kSwitch, {0x53, 0x89, 0x21, 0x8b, 0x22, 0x5b, 0x87, 0xca, 0xc3});
  // call 7d90h; then again and again: nop; call switch
  put(kOther, {0xe8, 0x0b, 0, 0, 0});
  put(0x7d90, {0x90, 0xe8, 0x6a, 0xff, 0xff, 0xff, 0xeb, 0xf8});
  put(0x604, {0xf8, 0x67, 0, 0});
  put(0x67f8, {0, 0, 0, 0, 0x80, 0x7d, 0, 0});
  begin(40);
  EXPECT_EQ(open_at(4), Moments{"2"});
  EXPECT_EQ(open_at(6), Moments{});  // the other's stack, on which nothing was called
  EXPECT_EQ(open_at(9), Moments{});
  EXPECT_EQ(open_at(10), Moments{"9"});
  EXPECT_EQ(open_at(12), (Moments{"11", "9"}));
  EXPECT_EQ(open_at(15), Moments{"2"});
  EXPECT_EQ(open_at(18), Moments{});
  EXPECT_EQ(open_at(20), Moments{"19"});
  EXPECT_EQ(open_at(22), (Moments{"21", "19"}));
  EXPECT_EQ(open_at(25), (Moments{"11", "9"}));
  EXPECT_EQ(open_at(29), Moments{"9"});
  EXPECT_EQ(open_at(35), (Moments{"21", "19"}));
  EXPECT_EQ(open_at(37), Moments{"19"});
  EXPECT_EQ(out_of(4), "18");
  EXPECT_EQ(out_of(22), "37");
  EXPECT_EQ(out_of(12), "28");
  EXPECT_EQ(out_of(20), "38");
}

TEST_F(OpenCalls, ACallKeepsATargetThatFaults) {
  put(P::kBegin, {0x90, 0xe8, 0x0a, 0, 0, 0, 0x90});  // nop; call 7c10h; nop
  put(0x7c10, {0x0f, 0x0b});                          // ud2
  put(P::kHandler, {0x90, 0x90, 0x90, 0x90});
  begin(5);
  const Json calls = calls_at(3);
  ASSERT_EQ(calls.size(), 2u) << calls;
  EXPECT_EQ(calls[0]["kind"], "event");
  EXPECT_EQ(calls[1]["kind"], "call");
  EXPECT_EQ(calls[1]["to"], "00007c10");
}

}  // namespace
}  // namespace citcat::view
