// What the plain comparison takes, block by block, the careful one takes as well, with the same
// totals, also where capture or recording is damaged; and it takes every capture that needs no
// adoption.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "acceptance/machine_run.h"

namespace citcat::test {
namespace {

std::string count_text(const char* name, const CheckCount& c) {
  return fmt::format("{} {}/{}\n", name, c.equal, c.checked);
}

struct Comparison {
  bool complete = false;
  std::uint64_t adopted = 0;
  std::string text;  ///< everything it says
};

/// A replay that stands at its beginning, with a comparison.
struct Checked {
  Checked(const ImportedRecording& imported, bool plain)
      : verifier(imported.recording, imported.read_evidence(), verifier_options(plain)),
        replayer(imported.recording, &verifier, replay_options(imported)) {}
  static VerifierOptions verifier_options(bool plain) {
    VerifierOptions options;
    options.plain = plain;
    return options;
  }
  static ReplayOptions replay_options(const ImportedRecording& imported) {
    ReplayOptions options;
    options.evidence = [&imported] { return imported.read_evidence(); };
    return options;
  }
  Verifier verifier;
  Replayer replayer;
};

Comparison compare(const ImportedRecording& imported, bool plain) {
  Checked checked(imported, plain);
  Verifier& verifier = checked.verifier;
  Replayer& replayer = checked.replayer;
  const ReplayReport report = verifier.finish(replayer.run());
  const VerifyTotals& t = verifier.totals();
  std::string text = fmt::format("{} after {} instructions, {} interrupts, {} exceptions\n",
                                 replay_end_name(report.end), report.instructions,
                                 report.interrupts, report.exceptions);
  text += count_text("writes", t.writes) + count_text("write-backs", t.write_backs) +
          count_text("port reads", t.io_reads) + count_text("port writes", t.io_writes) +
          count_text("special cycles", t.specials);
  text += fmt::format("reads {} adopted {} single bits {} evidence {} agreed last {}\n", t.reads,
                      t.adopted, t.single_bit_changes, t.evidence_bytes, verifier.last_agreed());
  for (const Adoption& a : verifier.adoptions()) {
    text += fmt::format("adopted {:08x} = {:02x} at {}.{}\n", a.address.value, a.value,
                        a.position.instruction, a.position.iteration);
  }
  if (report.divergence) {
    const Divergence& d = *report.divergence;
    text += fmt::format("{}.{} transaction {}: {}; expected {}; found {}\n", d.position.instruction,
                        d.position.iteration, d.transaction, d.reason, d.expected, d.found);
    return {false, t.adopted, text};
  }
  const CpuState s = replayer.machine().save();
  for (const std::uint32_t r : s.gpr) text += fmt::format("{:08x} ", r);
  const FinalMemory memory = verifier.compare_final(nullptr);
  text += fmt::format("eip {:08x} eflags {:08x}; memory {} bytes, {} different\n", s.eip, s.eflags,
                      memory.bytes, memory.different);
  return {true, t.adopted, text};
}

constexpr int kKindsOfDamage = 8;

/// One fault in what was captured or in what was made of it.
std::string damage(ImportedRecording& imported, int kind, std::mt19937& random) {
  std::vector<BusTransaction>& evidence = imported.evidence;
  Recording& recording = imported.recording;
  std::size_t at = random() % (evidence.size() - 1);
  // Writes are what evidence has data of.
  for (std::size_t i = 0; kind == 0 && i < evidence.size(); ++i, at = (at + 1) % evidence.size()) {
    if (evidence[at].op == BusOp::data_write) break;
  }
  BusTransaction& t = evidence[at];
  switch (kind) {
    case 0:
      t.data[random() % t.size] ^= static_cast<std::uint8_t>(1u << random() % 8);
      return fmt::format("one bit of transaction {}", t.index);
    case 1:
      evidence.erase(evidence.begin() + static_cast<std::ptrdiff_t>(at));
      return fmt::format("no transaction at {}", at);
    case 2:
      std::swap(t, evidence[at + 1]);
      return fmt::format("transactions exchanged at {}", at);
    case 3:
      t.position.instruction += 1 + random() % 3;
      return fmt::format("transaction {} late", t.index);
    case 4:
      t.position.instruction -= std::min<std::uint64_t>(t.position.instruction, 1 + random() % 3);
      return fmt::format("transaction {} early", t.index);
    case 5:
      t.address.value ^= 1u << random() % 14;
      return fmt::format("another address in transaction {}", t.index);
    case 6:
      recording.initial.gpr[random() % 8] ^= 1u << random() % 32;
      return "a register";
    default: {
      const auto& pages = recording.image.pages();
      auto page = pages.begin();
      std::advance(page, random() % pages.size());
      const PhysAddr byte{page->first * kPageSize +
                          static_cast<std::uint32_t>(random() % kPageSize)};
      const auto value = recording.image.byte(byte).value_or(0);
      recording.image.set(byte, static_cast<std::uint8_t>(value ^ (1u << random() % 8)));
      return fmt::format("memory at {:08x}", byte.value);
    }
  }
}

class CheckedPaths : public testing::TestWithParam<MachineCapture> {};

TEST_P(CheckedPaths, AgreeOnTheCaptureAndOnDamagedOnes) {
  const MachineCapture& capture = GetParam();
  const bool tiny = capture.name.ends_with("_tiny");
  const ImportedRecording imported = import_machine(capture, IgnoreCounts::none);
  const Comparison whole = compare(imported, false), plain = compare(imported, true);
  // It may leave to the careful comparison what has to be adopted.
  if (whole.complete && whole.adopted == 0) {
    EXPECT_TRUE(plain.complete) << plain.text;
  }
  if (plain.complete) {
    EXPECT_EQ(plain.text, whole.text);
  }
  constexpr std::uint32_t kSeed = 19850217;
  std::mt19937 random(kSeed);
  const int each = is_full_run() ? (tiny ? 30 : 3) : (tiny ? 1 : 0);
  int noticed = 0;
  for (int i = 0; i < each * kKindsOfDamage; ++i) {
    ImportedRecording damaged = import_machine(capture, IgnoreCounts::none);
    SCOPED_TRACE(damage(damaged, i % kKindsOfDamage, random));
    const Comparison expected = compare(damaged, false), found = compare(damaged, true);
    if (found.complete) {
      EXPECT_EQ(found.text, expected.text);
    }
    noticed += expected.text != whole.text ? 1 : 0;
  }
  EXPECT_GE(noticed, each / 2);
}

/// The replay at every tenth of it, and whether all of it was taken.
struct Stations {
  std::vector<Replayer::Checkpoint> checkpoints;
  bool complete = false;
};

Stations stop_on_the_way(const ImportedRecording& imported, bool plain) {
  Checked checked(imported, plain);
  Replayer& replayer = checked.replayer;
  Stations stations;
  const std::uint64_t length = imported.recording.instructions.value_or(0);
  for (std::uint64_t i = 1; i < 10; ++i) {
    if (replayer.run_to(length * i / 10).end == ReplayReport::End::diverged) return stations;
    stations.checkpoints.push_back(replayer.checkpoint());
  }
  const ReplayReport report = checked.verifier.finish(replayer.run_to(length));
  stations.complete = report.end != ReplayReport::End::diverged;
  return stations;
}

TEST_P(CheckedPaths, ReachTheSameStatesOnTheWay) {
  const ImportedRecording imported = import_machine(GetParam(), IgnoreCounts::none);
  const Stations found = stop_on_the_way(imported, true);
  if (!found.complete) GTEST_SKIP() << "the plain comparison does not suffice";
  const Stations expected = stop_on_the_way(imported, false);
  ASSERT_EQ(found.checkpoints.size(), expected.checkpoints.size());
  for (std::size_t i = 0; i < found.checkpoints.size(); ++i) {
    const Machine::Snapshot &a = found.checkpoints[i].machine, &b = expected.checkpoints[i].machine;
    SCOPED_TRACE("instruction " + std::to_string(b.position.instruction));
    EXPECT_EQ(a.position, b.position);
    EXPECT_TRUE(a.cpu == b.cpu);
    ASSERT_EQ(a.pages.size(), b.pages.size());
    for (std::size_t p = 0; p < a.pages.size(); ++p) {
      ASSERT_EQ(a.pages[p]->number, b.pages[p]->number);
      EXPECT_TRUE(a.pages[p]->data == b.pages[p]->data) << "page " << a.pages[p]->number;
      EXPECT_TRUE(a.pages[p]->defined == b.pages[p]->defined) << "page " << a.pages[p]->number;
    }
  }
}

// Without the shared data there is nothing to compare.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CheckedPaths);
INSTANTIATE_TEST_SUITE_P(, CheckedPaths, testing::ValuesIn(acceptance_captures(!is_full_run())),
                         [](const auto& test) { return capture_text(test.param); });

}  // namespace
}  // namespace citcat::test
