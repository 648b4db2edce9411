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
  std::string out_of(std::uint64_t at) { return moved(at, "out"); }
  std::string moved(std::uint64_t at, const char* how) {
    return view_->answer("move", Query({{"at", std::to_string(at)}, {"how", how}}))["position"];
  }
  Recording& recording() { return program_.recording(); }

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

/// A thunk that jumps by RET, as those against speculation do: its call returns to where it
/// jumps, and nothing ever runs behind it.
TEST_F(OpenCalls, AChangedReturnAddressIsWhereACallReturnsTo) {
  // mov eax, 7c40h; call 7c20h; nop
  put(P::kBegin, {0xb8, 0x40, 0x7c, 0, 0, 0xe8, 0x16, 0, 0, 0, 0x90});
  // call 7c28h; then again and again: pause; jmp
  put(0x7c20, {0xe8, 3, 0, 0, 0, 0xf3, 0x90, 0xeb});
  put(0x7c28, {0x89, 0x04, 0x24, 0xc3});  // mov [esp], eax; ret
  put(P::kFunction, {0x90, 0xc3});        // nop; ret
  begin(10);
  EXPECT_EQ(open_at(3), (Moments{"2", "1"}));
  EXPECT_EQ(moved(2, "over"), "5") << "the thunk's call returns to the function";
  EXPECT_EQ(out_of(3), "5");
  EXPECT_EQ(out_of(4), "7") << "which the address on the stack is not a call's any more";
  EXPECT_EQ(moved(1, "over"), "7") << "behind the call of the thunk";
  EXPECT_EQ(out_of(5), "7");
  EXPECT_EQ(moved(5, "over-back"), "4") << "no call leads to where the thunk's RET went";
}

/// A procedure that takes its return address from the stack and goes elsewhere never returns to its
/// call: the next thing that is pushed to its place shows that.
TEST_F(OpenCalls, AProcedureThatLeavesItsFrameHasEnded) {
  put(P::kBegin, {0xe8, 0x1b, 0, 0, 0, 0x90});     // call 7c20h; nop
  put(0x7c20, {0x83, 0xc4, 4, 0x90, 0x50, 0x90});  // add esp, 4; nop; push eax; nop
  begin(6);
  EXPECT_EQ(moved(0, "over"), "4");
}

/// INT from a program of level 3: out of its handler is behind it, with the program's stack.
TEST_F(OpenCalls, OutOfAHandlerIsWhatItInterrupted) {
  put(P::kBegin, {0xcd, 0x05, 0x90, 0x90});             // int 5; nop
  put(P::kHandler, {0x90, 0xe8, 0x0a, 0, 0, 0, 0xcf});  // nop; call 9010h; iretd
  put(0x9010, {0x90, 0xc3});
  put(0x1000 + 8 * 5, {0x00, 0x90, 0x08, 0x00, 0x00, 0xee, 0x00, 0x00});
  put(0x2018, {0xff, 0xff, 0, 0, 0, 0xfb, 0xcf, 0});  // code and data of level 3
  put(0x2020, {0xff, 0xff, 0, 0, 0, 0xf3, 0xcf, 0});
  put(0x3004, {0x00, 0x60, 0, 0, 0x10, 0});  // the stack of level 0
  CpuState& s = recording().initial;
  s.segment.fill({0x23, 0, 0xffffffff, 0xc0f3, false});
  s.segment[kCs] = {0x1b, 0, 0xffffffff, 0xc0fb, false};
  s.gdtr = {0x2000, 0x27};
  s.tr = {0x28, 0x3000, 0x67, 0x8b, false};
  begin(8);
  EXPECT_EQ(calls_at(2).back()["kind"], "event");
  EXPECT_EQ(out_of(1), "6");
  EXPECT_EQ(out_of(2), "6");
  EXPECT_EQ(out_of(3), "5") << "out of the procedure that the handler calls";
  EXPECT_EQ(moved(0, "over"), "6");
  EXPECT_EQ(moved(2, "out-back"), "0");
}

}  // namespace
}  // namespace citcat::view
