// A run is told the same by whatever way one comes to a moment of it.

#include "view/model/run_view.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "unit/debugger/watched_program.h"
#include "unit/replay/machine/high_memory_guest.h"
#include "unit/temporary_folder.h"
#include "view/exported/exported_page.h"

namespace citcat::view {
namespace {

using P = test::WatchedProgram;

class RunViewTest : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    P().store(path("r.citcat"));
    file_.emplace(RecordingFile::open(path("r.citcat")));
    RunViewOptions options;
    options.name = "r.citcat";
    view_.emplace(*file_, symbols_, std::move(options));
  }
  static RunViewOptions hasty_options() {
    RunViewOptions options;
    options.longest = std::chrono::milliseconds(0);
    return options;
  }
  Json ask(const std::string& question, Query::Values values = {}) {
    return view_->answer(question, Query(std::move(values)));
  }
  /// The moment at which the instruction at `address` runs the n-th time.
  std::string moment_of(std::uint32_t address, unsigned n = 1) {
    char text[16];
    std::snprintf(text, sizeof text, "%x", address);
    return ask("nth", {{"function", text}, {"n", std::to_string(n)}}).value("moment", "");
  }
  static std::string hex(std::uint32_t value) {
    char text[16];
    std::snprintf(text, sizeof text, "%08x", value);
    return text;
  }
  static std::map<std::string, std::string> registers(const Json& state) {
    std::map<std::string, std::string> values;
    for (const Json& row : state["registers"]) values[row["name"]] = row["value"];
    return values;
  }

  std::optional<RecordingFile> file_;
  Symbols symbols_;
  std::optional<RunView> view_;
};

/// Keeps what it is told.
class Steps final : public StepSink {
 public:
  void step(const RecordedStep& step) override {
    befores.push_back(step.before);
    afters.push_back(step.after);
    states.push_back(*step.state_after);
    linears.push_back(step.linear);
  }
  std::vector<Moment> befores, afters;
  std::vector<CpuState> states;
  std::vector<LinearAddr> linears;
};

TEST_F(RunViewTest, StepsThatAreRecordedAreThoseThatADebuggerMakes) {
  Steps steps;
  view_->go_to(WantedMoment{{}, std::nullopt});
  EXPECT_TRUE(view_->record(WantedMoment{{}, std::nullopt}, {P::kInstructions, 0}, steps, {}));
  ReplayTimeline& timeline = view_->timeline();
  timeline.seek({});
  for (std::size_t i = 0; i < steps.befores.size(); ++i) {
    EXPECT_EQ(steps.befores[i], timeline.moment()) << i;
    EXPECT_EQ(steps.linears[i], view_->machine().next_linear()) << i;
    ASSERT_TRUE(timeline.step()) << i;
    EXPECT_EQ(steps.afters[i], timeline.moment()) << i;
    EXPECT_EQ(steps.states[i], timeline.registers()) << i;
  }
  EXPECT_FALSE(timeline.step());
  // The string is repeated, and an instruction faults: there are more steps than instructions.
  EXPECT_GT(steps.befores.size(), P::kInstructions);
}

TEST_F(RunViewTest, AStepForwardsIsUndoneByOneBack) {
  std::string at = ask("moment", {{"at", "begin"}})["moment"];
  for (;;) {
    const Json state = ask("state", {{"at", at}});
    const Json further = ask("move", {{"at", at}, {"how", "step"}});
    if (further["why"] != "moved") break;
    const Json back = ask("move", {{"at", further["moment"].get<std::string>()}, {"how", "back"}});
    EXPECT_EQ(back["moment"], at);
    EXPECT_EQ(registers(ask("state", {{"at", at}})), registers(state));
    at = further["moment"];
  }
  EXPECT_EQ(at, ask("moment", {{"at", "end"}})["moment"]);
}

TEST_F(RunViewTest, CodeTellsWhatItReadAndWrote) {
  const std::string at = moment_of(P::kStore, 3);
  const Json code = ask("code", {{"at", at}, {"before", "4"}, {"after", "2"}});
  const Json& line = code["lines"][4];
  EXPECT_EQ(line["moment"], at);
  EXPECT_EQ(line["address"], hex(P::kStore));
  EXPECT_EQ(line["reads"][0]["address"], hex(P::kCount));
  EXPECT_EQ(line["reads"][0]["value"], "00000002");
  EXPECT_EQ(line["writes"][0]["value"], "00000003");
  EXPECT_EQ(code["lines"].size(), 6u);
}

TEST_F(RunViewTest, FindsWhoWroteAByteAndWhoReadsIt) {
  const std::string end = ask("moment", {{"at", "end"}})["moment"];
  const Json wrote = ask("access", {{"at", end}, {"address", hex(P::kCount)}, {"size", "4"}});
  ASSERT_TRUE(wrote["found"]);
  EXPECT_EQ(wrote["address"], hex(P::kHandler));
  EXPECT_EQ(wrote["before"], "05000000");
  EXPECT_EQ(wrote["after"], "06000000");
  const std::string begin = ask("moment", {{"at", "begin"}})["moment"];
  const Json next =
      ask("access",
          {{"at", begin}, {"address", hex(P::kCount)}, {"kind", "read"}, {"direction", "on"}});
  EXPECT_EQ(next["moment"], moment_of(P::kStore));
  const Json nobody = ask("access", {{"at", begin}, {"address", hex(P::kCount)}});
  EXPECT_FALSE(nobody["found"]);
}

/// The run where an interrupt comes between two instructions: no moment is before its delivery, for
/// the step of the one leads behind it.
class InterruptedView : public RunViewTest {
 protected:
  static constexpr std::uint64_t kAfter = 4;

  void SetUp() override {
    constexpr std::uint32_t kInterruptsAllowed = 0x202;
    P program;
    Recording& recording = program.recording();
    recording.initial.eflags = kInterruptsAllowed;
    recording.instructions = kAfter + 2;
    Interrupt interrupt;
    interrupt.vector = 0x10;
    interrupt.position_known = true;
    interrupt.position = {kAfter, 0};
    recording.interrupts.push_back(interrupt);
    program.store(path("r.citcat"));
    file_.emplace(RecordingFile::open(path("r.citcat")));
    view_.emplace(*file_, symbols_, RunViewOptions());
  }
};

TEST_F(InterruptedView, FindsWhoWroteTheFrameAndWhatReadTheTable) {
  const std::string before = "3~0", after = "4~1";
  const Json wrote =
      ask("access", {{"at", after}, {"address", hex(P::kStack - 4)}, {"space", "physical"}});
  ASSERT_TRUE(wrote["found"]) << wrote;
  EXPECT_EQ(wrote["moment"], before);
  EXPECT_EQ(wrote["next"], after);
  EXPECT_EQ(wrote["by"], "the processor itself");
  EXPECT_EQ(wrote["text"], "nop");
  EXPECT_EQ(wrote["events"], Json({"interrupt 10h"}));
  const Json read = ask("access", {{"at", "begin"},
                                   {"address", hex(0x1000 + 8 * 0x10)},
                                   {"kind", "read"},
                                   {"direction", "on"}});
  EXPECT_EQ(read["moment"], before);
  EXPECT_EQ(read["next"], after);
}

TEST_F(InterruptedView, SaysThatTheInterruptCameWithWhatChangedARegister) {
  const Json set = ask("setter", {{"at", "4~1"}, {"register", "esp"}});
  EXPECT_EQ(set["moment"], "3~0");
  EXPECT_EQ(set["events"], Json({"interrupt 10h"}));
}

TEST_F(RunViewTest, GoesOutOfNoCall) {
  for (const char* const how : {"out", "out-back"}) {
    const Json moved = ask("move", {{"at", moment_of(P::kStore)}, {"how", how}});
    EXPECT_EQ(moved["why"], "no call");
    EXPECT_EQ(moved["moment"], moment_of(P::kStore));
  }
}

TEST_F(RunViewTest, FindsWhatSetARegister) {
  // ECX counts the loop: LOOP, behind the store and a NOP, changes it.
  const std::string third = moment_of(P::kStore, 3);
  const Json loop = ask("setter", {{"at", third}, {"register", "ecx"}});
  ASSERT_TRUE(loop["found"]);
  EXPECT_EQ(loop["text"].get<std::string>().substr(0, 4), "loop");
  EXPECT_EQ(ask("move", {{"at", loop["moment"].get<std::string>()}, {"how", "step"}})["moment"],
            third);
  const Json first = ask("setter", {{"at", moment_of(P::kStore)}, {"register", "ecx"}});
  EXPECT_EQ(first["text"].get<std::string>().substr(0, 3), "mov");
  const Json never = ask("setter", {{"at", third}, {"register", "ebp"}});
  EXPECT_FALSE(never["found"]);
  EXPECT_EQ(never["why"], "it has had this value since the recording began");
  EXPECT_THROW(ask("setter", {{"at", third}, {"register", "r15"}}), UsageError);
}

TEST_F(RunViewTest, GoesOverACallAndBackOverIt) {
  const std::string call = moment_of(P::kCall);
  const Json over = ask("move", {{"at", call}, {"how", "over"}});
  const Json back = ask("move", {{"at", over["moment"].get<std::string>()}, {"how", "over-back"}});
  EXPECT_EQ(back["moment"], call);
  const std::string within = moment_of(P::kFunction);
  const Json calls = ask("calls", {{"at", within}})["calls"];
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["from"], hex(P::kCall));
  EXPECT_EQ(calls[0]["to"], hex(P::kFunction));
  EXPECT_EQ(ask("move", {{"at", within}, {"how", "out-back"}})["moment"], call);
  EXPECT_EQ(ask("move", {{"at", within}, {"how", "out"}})["moment"], over["moment"]);
}

TEST_F(RunViewTest, TheTimelineHasEveryInstructionOnceAtAnyZoom) {
  while (view_->look_further(3)) {
  }
  for (const std::string count : {"1", "5", "31"}) {
    const Json columns = ask("timeline", {{"count", count}})["columns"];
    std::uint64_t instructions = 0, exceptions = 0;
    for (const Json& n : columns["level0"]) instructions += n.get<std::uint64_t>();
    for (const Json& n : columns["exceptions"]) exceptions += n.get<std::uint64_t>();
    EXPECT_EQ(instructions, P::kInstructions) << count;
    EXPECT_EQ(exceptions, 1u) << count;
  }
}

std::uint64_t sum_of(const Json& column) {
  std::uint64_t sum = 0;
  for (const Json& n : column) sum += n.get<std::uint64_t>();
  return sum;
}

/// The program, with something at the beginning or the end of the run.
class RunEnds : public test::TemporaryFolder {
 protected:
  static constexpr std::uint8_t kVector = 0x17;
  void look(const P& program) {
    program.store(path("r.citcat"));
    file_.emplace(RecordingFile::open(path("r.citcat")));
    view_.emplace(*file_, symbols_, RunViewOptions{});
    while (view_->look_further(3)) {
    }
  }
  Json ask(const std::string& question, Query::Values values = {}) {
    return view_->answer(question, Query(std::move(values)));
  }
  /// Whose handler returns at once.
  static void interrupt_at(P& program, Position at) {
    Recording& recording = program.recording();
    recording.image.set(PhysAddr{0x1000 + 8 * kVector + 1}, 0x91);
    recording.image.set(PhysAddr{0x9100}, 0xcf);  // iretd
    recording.initial.eflags |= 1u << 9;
    Interrupt interrupt;
    interrupt.vector = kVector;
    interrupt.position = at;
    interrupt.position_known = true;
    recording.interrupts.push_back(interrupt);
    ++*recording.instructions;
  }
  /// Steps from the beginning to the end, and back again.
  std::vector<std::string> walk() {
    std::vector<std::string> moments{"begin"};
    const auto go = [&](const char* how) {
      const Json answer = ask("move", {{"at", moments.back()}, {"how", how}});
      moments.push_back(answer["moment"]);
      return answer["why"] == "moved";
    };
    moments[0] = ask("moment", {{"at", "begin"}})["moment"];
    while (go("step")) {
    }
    moments.pop_back();
    std::vector<std::string> there = moments;
    while (go("back")) {
    }
    moments.pop_back();
    moments.erase(moments.begin(), moments.begin() + static_cast<std::ptrdiff_t>(there.size()) - 1);
    std::reverse(moments.begin(), moments.end());
    EXPECT_EQ(moments, there);
    return there;
  }

  std::optional<RecordingFile> file_;
  Symbols symbols_;
  std::optional<RunView> view_;
};

TEST_F(RunEnds, TheFaultsThatShutTheProcessorDownAreTold) {
  P program;
  program.recording().initial.idtr = {0, 0};
  const std::uint64_t fault = 23;  // UD2
  program.recording().instructions = fault;
  program.recording().end = Position{fault, 0};
  look(program);
  const std::string end = ask("moment", {{"at", "end"}})["moment"];
  EXPECT_EQ(end, "23~3");
  EXPECT_EQ(walk().back(), end);
  const Json run = ask("run");
  EXPECT_EQ(run["totals"]["exceptions"], 3);
  EXPECT_EQ(run["unusual"][0]["moment"], "23");
  for (const char* count : {"1", "7", "23"}) {
    const Json all = ask("timeline", {{"count", count}});
    EXPECT_EQ(sum_of(all["columns"]["exceptions"]), 3u) << count;
    EXPECT_EQ(sum_of(all["columns"]["level0"]), fault) << count;
  }
  const Json lines = ask("code", {{"at", end}})["lines"];
  ASSERT_GE(lines.size(), 2u);
  const Json& last = lines[lines.size() - 2];
  EXPECT_EQ(last["address"], "00007c35");
  EXPECT_EQ(last["events"].size(), 4u) << last;
  EXPECT_EQ(lines.back()["ends"], "the processor has shut down");
}

TEST_F(RunEnds, AnInterruptBeforeTheFirstInstructionIsTold) {
  P program;
  interrupt_at(program, {});
  look(program);
  EXPECT_EQ(ask("moment", {{"at", "begin"}})["moment"], "0~0");
  EXPECT_EQ(walk()[1], "0~1");
  EXPECT_EQ(ask("run")["totals"]["interrupts"], 1);
  EXPECT_EQ(ask("state", {{"at", "0"}})["address"], "00007c00");
  EXPECT_EQ(ask("state", {{"at", "0~1"}})["address"], "00009100");
  const Json line = ask("code", {{"at", "0"}})["lines"][0];
  EXPECT_EQ(line["moment"], "0~0");
  EXPECT_EQ(line["events"], Json({"interrupt 17h"}));
  EXPECT_TRUE(line.contains("interrupted"));
  EXPECT_FALSE(line.contains("faults"));
  for (const char* from : {"0", "1"}) {
    const Json near = ask("timeline", {{"from", from}, {"to", "20"}, {"count", "20"}});
    EXPECT_EQ(near["columns"].contains("interrupts"), from[0] == '0') << near;
  }
}

TEST_F(RunEnds, AnEventAtTheFirstInstructionOfAStretchIsInIt) {
  P program;
  look(program);
  const Json exceptions = ask("events", {{"kinds", "exception"}})["events"];
  ASSERT_EQ(exceptions.size(), 1u);
  const std::string at = exceptions[0]["moment"];
  const std::string next = std::to_string(std::stoull(at) + 1);
  const auto in_stretch = [&](const std::string& from, const std::string& to) {
    const Json near = ask("timeline", {{"from", from}, {"to", to}});
    EXPECT_EQ(near["width"], 1);
    return near["columns"].contains("exceptions");
  };
  EXPECT_TRUE(in_stretch(at, next));
  EXPECT_FALSE(in_stretch(next, std::to_string(P::kInstructions)));
  EXPECT_FALSE(in_stretch("0", at));
}

/// A search forwards ends before the access, as one backwards does: in every iteration, also of a
/// REP after which an interrupt comes.
TEST_F(RunEnds, AnAccessIsFoundAtTheSameMomentFromBothSides) {
  P program;
  interrupt_at(program, {22, 2});  // within the string
  look(program);
  const auto found = [&](const std::string& at, const char* direction, std::uint32_t address) {
    char text[16];
    std::snprintf(text, sizeof text, "%x", address);
    return ask("access", {{"at", at}, {"address", text}, {"direction", direction}});
  };
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t at = P::kFilled + 4 * i;
    const Json on = found("20", "on", at), back = found("end", "back", at);
    EXPECT_EQ(on["text"], "rep stosd") << on;
    for (const char* const key : {"moment", "next", "text", "before", "after"}) {
      EXPECT_EQ(on[key], back[key]) << key << " of iteration " << i;
    }
  }
}

TEST_F(RunEnds, AnotherMastersWriteIsFoundBeforeItHappens) {
  P program;
  ExternalWrite write;
  write.address = PhysAddr{P::kWide};
  write.data = {1, 2};
  write.position_known = true;
  write.position = {9, 0};
  program.recording().external_writes.push_back(write);
  look(program);
  const auto found = [&](const char* at, const char* direction) {
    return ask("access", {{"at", at}, {"address", "700"}, {"direction", direction}});
  };
  const Json on = found("3", "on"), back = found("12", "back");
  EXPECT_EQ(on["by"], "another bus master");
  EXPECT_EQ(on["before"], "ff");
  EXPECT_EQ(on["after"], "01");
  for (const char* const key : {"moment", "next", "before", "after"}) EXPECT_EQ(on[key], back[key]);
}

/// A fault sets CR2, and the instruction before it does not.
TEST_F(RunEnds, WhatAFaultingInstructionIsIsTold) {
  P program;
  look(program);
  const Json line = ask("code", {{"at", "23"}, {"before", "0"}, {"after", "1"}})["lines"][0];
  EXPECT_TRUE(line.contains("faults")) << line;
  EXPECT_EQ(line["bytes"], "0f0b");
  EXPECT_EQ(line["text"], "ud2");
  EXPECT_EQ(ask("setter", {{"at", "23~1"}, {"register", "esp"}})["moment"], "23~0");
}

TEST_F(RunEnds, ARepThatAnInterruptEndsCountsOnce) {
  P program;
  interrupt_at(program, {22, 2});  // within the string
  look(program);
  const std::uint64_t all = P::kInstructions + 1;
  EXPECT_EQ(sum_of(ask("timeline")["columns"]["level0"]), all);
  const Json process = ask("processes")["processes"][0];
  EXPECT_EQ(process["instructions"], all);
  EXPECT_EQ(process["last"], std::to_string(all));
}

TEST_F(RunViewTest, RefusesQuestionsThatMakeNoSense) {
  EXPECT_THROW(ask("nonsense"), UsageError);
  EXPECT_THROW(ask("state"), UsageError);
  EXPECT_THROW(ask("state", {{"at", "x"}}), UsageError);
  EXPECT_THROW(ask("state", {{"at", "1000"}}), UsageError);
  EXPECT_THROW(ask("state", {{"at", "1~7"}}), UsageError);
  EXPECT_THROW(ask("state", {{"at", "1~18446744073709551615"}}), UsageError);
  EXPECT_LT(view_->timeline().position().instruction, 3u) << "it does not look for that far on";
  EXPECT_THROW(ask("memory", {{"at", "1"}, {"address", "600"}, {"size", "65537"}}), UsageError);
  EXPECT_THROW(ask("memory", {{"at", "1"}, {"address", "600"}, {"space", "other"}}), UsageError);
  EXPECT_THROW(ask("move", {{"at", "1"}, {"how", "jump"}}), UsageError);
  EXPECT_THROW(ask("code", {{"at", "1"}, {"before", "1000000"}}), UsageError);
}

TEST_F(RunViewTest, ASearchEndsWhenItsTimeIsOver) {
  RunView hasty(*file_, symbols_, hasty_options());
  const Json answer =
      hasty.answer("access", Query({{"at", "end"}, {"address", "9999"}, {"kind", "read"}}));
  EXPECT_FALSE(answer["found"]);
  EXPECT_EQ(answer["why"], "the search took too long");
  // Nor does any other answer pass for a whole one.
  for (const auto& [question, values] :
       std::map<std::string, Query::Values>{{"setter", {{"at", "20"}, {"register", "ebp"}}},
                                            {"code", {{"at", "20"}}},
                                            {"calls", {{"at", "20"}}}}) {
    const Json cut = hasty.answer(question, Query(values));
    EXPECT_EQ(cut.value("why", ""), "the search took too long") << question;
  }
}

TEST_F(RunViewTest, AnExportTakesAllOfItsStretchHoweverLongThatIs) {
  RunView hasty(*file_, symbols_, hasty_options());
  const auto page_of = [](RunView& view) {
    const ExportedRun run{&view, {0, P::kInstructions}, {0, P::kInstructions}, nullptr, nullptr};
    return exported_page(std::span(&run, 1), Json::object(), nullptr);
  };
  EXPECT_TRUE(page_of(hasty).has_value());
  RunViewOptions options = hasty_options();
  options.interrupted = [] { return true; };
  RunView ended(*file_, symbols_, std::move(options));
  EXPECT_FALSE(page_of(ended).has_value());
}

TEST_F(RunViewTest, IsLookedThroughTheSameWithQuestionsInBetween) {
  RunView undisturbed(*file_, symbols_, {});
  while (undisturbed.look_further(3)) {
  }
  while (view_->look_further(3)) ask("state", {{"at", "7"}});
  for (const char* question : {"timeline", "events", "processes"}) {
    EXPECT_EQ(ask(question), undisturbed.answer(question, Query())) << question;
  }
}

class HighMemoryViewTest : public HighMemoryGuest {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  const std::string path_ = testing::TempDir() + "citcat_high_view_" + std::to_string(::getpid());
};

TEST_F(HighMemoryViewTest, EventsHaveTheirWholeAddress) {
  put(kCode, {0x48, 0x8b, 0x03,  // mov rax, [rbx]
              0x48, 0x8b, 0x01,  // mov rax, [rcx], where no page is
              0xf4});
  put(kHandler, {0xf4});
  set_register(recording_.initial, "rcx", 0xffff'8000'0020'5008);
  ExternalWrite write;
  write.address = PhysAddr{kBeyond + kPage};
  write.data = {7, 8};
  write.position_known = true;
  write.position = {1, 0};
  recording_.external_writes.push_back(write);
  recording_.instructions = 2;
  RecordingFileWriter(path_).finish(recording_);
  RecordingFile file = RecordingFile::open(path_);
  const Symbols symbols;
  RunView view(file, symbols, {});
  while (view.look_further(100)) {
  }
  const Json answer =
      view.answer("events", Query(Query::Values{{"kinds", "exception,external_write"}}));
  ASSERT_EQ(answer["events"].size(), 2u) << answer.dump();
  EXPECT_EQ(answer["events"][0]["physical"], "6300014000");
  EXPECT_EQ(answer["events"][1]["address"], "ffff800000205008");
}

}  // namespace
}  // namespace citcat::view
