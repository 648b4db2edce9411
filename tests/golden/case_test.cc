// Replays every tests/golden/cases/*.case and compares the listing of the run with the file's.
// scripts/rebase rewrites the expectations; the review reads that difference.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <vector>

#include "events/archive/recording_file.h"
#include "golden/case_file.h"
#include "golden/golden_files.h"
#include "golden/process.h"
#include "replay/infer/places/event_placer.h"
#include "replay/run/replay_timeline.h"
#include "replay/session/checkpoint_codec.h"
#include "replay/session/replayer.h"
#include "unit/replay/infer/registers/inferred_recording.h"
#include "unit/replay/run/state_hash.h"
#include "x86/disassembler.h"

namespace citcat::testing {
namespace {

constexpr const char* kGprNames[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
constexpr const char* kWideNames[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
constexpr const char* kSegmentNames[] = {"es", "cs", "ss", "ds", "fs", "gs"};

std::string hex_bytes(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x} ", byte);
  if (!text.empty()) text.pop_back();
  return text;
}

std::uint64_t value_of(const CpuState& state, const char* name) {
  return get_register(state, name).value_or(0);
}

/// The width of the code that the processor is in.
int code_bits(const CpuState& state) {
  constexpr std::uint16_t kWide = 0x4000, kLong = 0x2000;
  constexpr std::uint64_t kLongModeActive = 0x400;
  const std::uint16_t attributes = state.segment[kCs].attributes;
  const bool long_mode = state.long_mode && (state.long_mode->efer & kLongModeActive) != 0;
  if (long_mode && (attributes & kLong) != 0) return 64;
  return (attributes & kWide) != 0 ? 32 : 16;
}

/// Lists a run in the words of tests/golden/README.md, one line a report.
class Lister final : public Observer {
 public:
  Interest interest() const override { return Interest::changes(); }
  void watch(const Machine& machine) override {
    machine_ = &machine;
    before_ = machine.save();
  }

  void instruction(const ExecutedInstruction& e, Position) override {
    const std::span<const std::uint8_t> bytes(e.info->bytes.data(), e.info->length);
    const int bits = e.info->bits64 ? 64 : code_bits(machine_->save());
    std::string line = fmt::format("{:05x}  {:<20} {:<28}", e.linear.value, hex_bytes(bytes),
                                   Disassembler(bits).text(bytes, e.linear.low32()));
    for (int i = 0; i < e.ea_count; ++i) line += fmt::format(" ea={:05x}", e.ea[i].value);
    add(line + changed_registers());
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position) override {
    const char* who = kind == AccessKind::walk ? "walk" : "write";
    add(fmt::format("       {} {:05x}: {}", who, a.value, hex_bytes(bytes)));
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position) override {
    add(fmt::format("       in {:02x} = {:0{}x}", port, value, 2 * size));
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position) override {
    add(fmt::format("       out {:02x} = {:0{}x}", port, value, 2 * size));
  }
  void delivered(const DeliveredEvent& event, Position now) override {
    constexpr const char* kKinds[] = {"exception", "interrupt", "software", "nmi", "smi"};
    std::string line =
        fmt::format("{} {:02x} at {}.{} {:04x}:{:04x}", kKinds[static_cast<int>(event.kind)],
                    event.vector, now.instruction, now.iteration, event.cs, event.eip);
    constexpr std::uint8_t kPageFault = 14;
    if (event.kind == DeliveredEvent::Kind::exception && event.vector == kPageFault)
      line += fmt::format(" error={:x} cr2={:05x}", event.error_code, event.cr2);
    add(line + changed_registers());
  }
  void halted(Position) override { add("halt"); }
  void shutdown(Position) override { add("shutdown"); }

  /// The last lines: how it ended, and the registers no instruction line shows.
  std::string finish(const ReplayReport& report) {
    std::string end = replay_end_name(report.end);
    if (report.divergence) {
      end += fmt::format(" at {}.{}: {}: expected {}, found {}",
                         report.divergence->position.instruction,
                         report.divergence->position.iteration, report.divergence->reason,
                         report.divergence->expected, report.divergence->found);
    } else {
      const CpuState state = machine_->save();
      end += fmt::format(
          " after {}: {:04x}:{:04x} flags={:04x}", report.instructions, state.segment[kCs].selector,
          state.long_mode ? value_of(state, "rip") : state.eip, state.eflags & 0xffff);
    }
    add(end);
    return listing_;
  }

 private:
  /// Lines carry no blanks at their end, so that editors leave case files alone.
  void add(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    listing_ += line + "\n";
  }

  /// General and segment registers that are not what they were at the previous line.
  std::string changed_registers() {
    const CpuState now = machine_->save();
    std::string text;
    for (const char* const name : kWideNames) {
      if (!now.long_mode) break;
      const std::uint64_t value = value_of(now, name);
      if (value != value_of(before_, name)) text += fmt::format(" {}={:x}", name, value);
    }
    for (std::size_t i = 0; !now.long_mode && i < std::size(kGprNames); ++i) {
      if (now.gpr[i] != before_.gpr[i]) text += fmt::format(" {}={:x}", kGprNames[i], now.gpr[i]);
    }
    for (std::size_t i = 0; i < std::size(kSegmentNames); ++i) {
      if (now.segment[i].selector != before_.segment[i].selector)
        text += fmt::format(" {}={:04x}", kSegmentNames[i], now.segment[i].selector);
    }
    before_ = now;
    return text;
  }

  const Machine* machine_ = nullptr;
  CpuState before_;
  std::string listing_;
};

std::string list_run(const Recording& recording) {
  Lister lister;
  Replayer replayer(recording, &lister, {});
  return lister.finish(replayer.run());
}

/// The case's recording; where a bus shows interrupts without a count, with the places that are
/// found for them, which `placed` tells a line each.
Recording recording_of(CaseFile& file, std::string* placed = nullptr) {
  if (file.bus.empty()) return std::move(file.recording);
  ImportedRecording imported = import_case(file);
  const PlacementReport report = test::place_interrupts(imported);
  for (const PlacedEvent& e : report.events) {
    if (placed == nullptr) break;
    *placed += fmt::format("placed {}.{} {}\n", e.position.instruction, e.position.iteration,
                           placement_name(e.placement));
  }
  return std::move(imported.recording);
}

class Case : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Case, RunsAsItsFileSays) {
  CaseFile file = load_case(GetParam());
  std::string placed;
  const Recording recording = recording_of(file, &placed);
  const std::string listing = placed + list_run(recording);
  if (is_rebasing()) {
    write_file(GetParam(), file.given + listing);
    return;
  }
  EXPECT_EQ(listing, file.expect);
}

TEST_P(Case, RunsTheSameFromItsArchive) {
  CaseFile file = load_case(GetParam());
  const Recording recording = recording_of(file);
  const TemporaryFolder folder;
  const std::string path = folder.path() / "case.citcat";
  RecordingFileWriter(path).finish(recording);
  EXPECT_EQ(list_run(RecordingFile::open(path).recording()), list_run(recording));
}

/// The run of `replayer` from where it is.
std::string list_rest(Replayer& replayer, Lister& lister, std::uint64_t end) {
  return lister.finish(replayer.run_to(end));
}

TEST_P(Case, RunsTheSameFromAStoredCheckpointAtAnyInstruction) {
  CaseFile file = load_case(GetParam());
  const Recording recording = recording_of(file);
  Replayer whole(recording, nullptr, {});
  const std::uint64_t end = whole.run().instructions;
  for (std::uint64_t at = 1; at < end; ++at) {
    Lister lister;
    Replayer replayer(recording, &lister, {});
    replayer.run_to(at);
    const Replayer::Checkpoint checkpoint = replayer.checkpoint();
    lister = Lister();
    lister.watch(replayer.machine());
    const std::string expected = list_rest(replayer, lister, end);

    const std::vector<std::uint8_t> stored = encode_checkpoint_state(checkpoint);
    ByteReader in(stored, "checkpoint", 0);
    Replayer::Checkpoint read = decode_checkpoint_state(in, recording);
    read.machine.pages = saved_pages(stored_pages(checkpoint));
    Lister second;
    Replayer resumed(recording, &second, {});
    resumed.restore(read);
    second.watch(resumed.machine());
    EXPECT_EQ(list_rest(resumed, second, end), expected) << "from instruction " << at;
  }
}

TEST_P(Case, IsTheSameBackwardsAsForwards) {
  CaseFile file = load_case(GetParam());
  const TemporaryFolder folder;
  const std::string path = folder.path() / "case.citcat";
  RecordingFileWriter(path).finish(recording_of(file));
  const RecordingFile stored = RecordingFile::open(path);
  ReplayTimeline timeline(stored, nullptr, {});
  std::vector<std::pair<Moment, std::string>> passed;
  const auto here = [&] {
    return std::pair(timeline.moment(), test::state_hash(timeline.registers(), timeline.memory()));
  };
  do {
    passed.push_back(here());
    ASSERT_LT(passed.size(), 10'000u);
  } while (timeline.step());
  for (passed.pop_back(); !passed.empty(); passed.pop_back()) {
    ASSERT_TRUE(timeline.step_back());
    ASSERT_EQ(here(), passed.back()) << timeline.position().instruction;
  }
  EXPECT_FALSE(timeline.step_back());
}

INSTANTIATE_TEST_SUITE_P(Golden, Case, ::testing::ValuesIn(golden_files("cases", ".case")),
                         golden_test_name);

}  // namespace
}  // namespace citcat::testing
