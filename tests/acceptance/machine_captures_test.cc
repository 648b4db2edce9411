// Every capture of a whole machine, in every bus form, must replay to exactly what an independent
// simulator says the machine did: instructions, accesses, events, registers, memory.
//
// The ordinary run takes the small ones; CITCAT_ACCEPTANCE=full (scripts/test-acceptance) all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "acceptance/machine_run.h"
#include "replay/infer/places/event_placer.h"
#include "unit/replay/infer/registers/inferred_recording.h"

namespace citcat::test {
namespace {

using testing::IsEmpty;

std::string divergence_text(const ReplayReport& report) {
  if (!report.divergence) return "";
  const Divergence& d = *report.divergence;
  return "instruction " + std::to_string(d.position.instruction) + "." +
         std::to_string(d.position.iteration) + " transaction " + std::to_string(d.transaction) +
         ": " + d.reason + "; expected " + d.expected + "; found " + d.found;
}

class MachineCaptures : public testing::TestWithParam<MachineCapture> {
 protected:
  void expect_ground_truth(MachineRun& run) {
    EXPECT_EQ(run.golden().mismatch_count(), 0u);
    EXPECT_THAT(run.golden().mismatches(), IsEmpty());
    const GoldenCounts& c = run.golden().counts();
    if (has_golden_stream(GetParam())) {
      EXPECT_GT(c.instructions, 0u);
      EXPECT_GT(c.starts, 0u);
      EXPECT_GT(c.addresses, 0u);
    } else {
      EXPECT_GT(c.hashes, 0u);
    }
    RecordProperty("instructions", std::to_string(c.instructions));
    RecordProperty("events", std::to_string(c.events));
    RecordProperty("hashes", std::to_string(c.hashes));
    RecordProperty("status_flags_differ", std::to_string(c.status_flags_differ));
    std::printf(
        "  ground truth: %llu instructions, %llu bytes written, %llu port accesses, "
        "%llu addresses, %llu registers, %llu events, %llu hashes; status flags differ "
        "after %llu\n",
        static_cast<unsigned long long>(c.instructions),
        static_cast<unsigned long long>(c.bytes_written), static_cast<unsigned long long>(c.ports),
        static_cast<unsigned long long>(c.addresses), static_cast<unsigned long long>(c.registers),
        static_cast<unsigned long long>(c.events), static_cast<unsigned long long>(c.hashes),
        static_cast<unsigned long long>(c.status_flags_differ));
  }

  void expect_final_state(MachineRun& run) {
    const MachineCapture& capture = GetParam();
    const Position end = run.machine().position();
    if (!run.run_to_end_of_window()) {
      // The bus was silent from here on until something came that only it would have shown.
      std::printf("  stopped at instruction %llu of %llu: final state not compared\n",
                  static_cast<unsigned long long>(run.machine().position().instruction),
                  static_cast<unsigned long long>(run.window()));
      EXPECT_LT(run.window() - end.instruction, 5000u);
      return;
    }
    run.golden().finish(run.machine().position());
    std::uint64_t compared = 0;
    EXPECT_THAT(final_memory_differences(capture, run.machine(), run.machine().memory(), compared),
                IsEmpty());
    EXPECT_GT(compared, 0u);
    EXPECT_THAT(
        final_register_differences(capture, run.machine().save(), !has_specific_results(capture)),
        IsEmpty());
  }
};

TEST_P(MachineCaptures, ReplayEqualsTheGroundTruth) {
  const MachineCapture& capture = GetParam();
  if (has_specific_results(capture)) GTEST_SKIP() << "see AdoptsWhatImplementationsDifferIn";
  const ImportedRecording imported = import_machine(capture, IgnoreCounts::none);
  MachineRun run(capture, imported, {});
  run.run();
  EXPECT_EQ(run.report().end, ReplayReport::End::complete) << divergence_text(run.report());
  EXPECT_EQ(run.totals().adopted, 0u);
  if (run.report().end == ReplayReport::End::complete) expect_final_state(run);
  expect_ground_truth(run);
}

TEST_P(MachineCaptures, ReplaysWithCountsAtInterruptsAlone) {
  const MachineCapture& capture = GetParam();
  const ImportedRecording imported = import_machine(capture, IgnoreCounts::all_but_interrupts);
  for (const IoRead& read : imported.recording.io_reads) ASSERT_FALSE(read.position_known);
  for (const ExternalWrite& w : imported.recording.external_writes) ASSERT_FALSE(w.position_known);
  MachineRun run(capture, imported, {});
  if (has_specific_results(capture)) run.golden().tolerate_floating_point();
  run.run();
  EXPECT_EQ(run.report().end, ReplayReport::End::complete) << divergence_text(run.report());
  expect_ground_truth(run);
  std::uint64_t last_interrupt = 0;
  if (!imported.recording.interrupts.empty()) {
    last_interrupt = imported.recording.interrupts.back().position.instruction;
  }
  EXPECT_GT(run.report().instructions, last_interrupt);
  EXPECT_EQ(run.report().interrupts, imported.recording.interrupts.size());
  EXPECT_EQ(run.report().io_reads, imported.recording.io_reads.size());
}

/// Firmware has moved SMBASE before the capture began, and the state dump has no word for it: the
/// first SMI tells it.
TEST(MovedSmbase, IsTakenFromTheFirstSmi) {
  const MachineCapture capture{"k32_smi_small", 'C'};
  const auto captures = acceptance_captures(false);
  const bool here = std::any_of(captures.begin(), captures.end(), [&](const MachineCapture& c) {
    return capture_text(c) == capture_text(capture);
  });
  if (!here) GTEST_SKIP() << capture_text(capture) << " is not there (set CITCAT_SHARED)";
  for (const IgnoreCounts counts : {IgnoreCounts::none, IgnoreCounts::all_but_interrupts}) {
    ImportedRecording imported = import_machine(capture, counts);
    EXPECT_EQ(imported.recording.initial.smbase, 0xa0000u);
    // Counts at acknowledges alone leave out the SMI, which has none.
    const PlacementReport placed = place_interrupts(imported);
    EXPECT_EQ(placed.count(Placement::unique), counts == IgnoreCounts::none ? 0u : 1u);
    EXPECT_FALSE(is_unknown(imported.recording.initial, "smbase"));
    MachineRun run(capture, imported, {});
    run.run();
    EXPECT_EQ(run.report().end, ReplayReport::End::complete) << divergence_text(run.report());
    EXPECT_EQ(run.golden().mismatch_count(), 0u);
    EXPECT_THAT(run.golden().mismatches(), IsEmpty());
    EXPECT_GT(run.golden().counts().hashes, 0u);
  }
}

/// The machine's cache is the one its monitor simulated: nothing may differ, with counts or
/// without.
TEST_P(MachineCaptures, MissesExactlyWhereTheModelOfItsCacheDoes) {
  const MachineCapture& capture = GetParam();
  if (capture.form == 'A') GTEST_SKIP() << "has no cache";
  for (const IgnoreCounts counts : {IgnoreCounts::none, IgnoreCounts::all_but_interrupts}) {
    const ImportedRecording imported = import_machine(capture, counts);
    const CacheTotals totals = cache_totals(imported);
    for (const CacheCount& count : {totals.fills, totals.write_backs}) {
      EXPECT_EQ(count.predicted, count.agree);
      EXPECT_EQ(count.captured, count.agree);
    }
    EXPECT_FALSE(totals.first) << totals.first->position.instruction << ": "
                               << cache_disagreement_text(*totals.first);
    if (counts != IgnoreCounts::none) continue;
    EXPECT_EQ(totals.fills.captured, declared_count(capture, "line_fills"));
    EXPECT_EQ(totals.write_backs.captured, declared_count(capture, "line_writebacks"));
    std::printf("  %llu fills, %llu write-backs\n",
                static_cast<unsigned long long>(totals.fills.agree),
                static_cast<unsigned long long>(totals.write_backs.agree));
  }
}

/// What the monitor counted is where the search must find every interrupt.
TEST_P(MachineCaptures, PlacesInterruptsThatNobodyCounted) {
  const MachineCapture& capture = GetParam();
  if (capture.form == 'C') GTEST_SKIP() << "see NarrowsInterruptsBehindAWriteBackCache";
  const ImportedRecording counted = import_machine(capture, IgnoreCounts::all_but_interrupts);
  ImportedRecording imported = import_machine(capture, IgnoreCounts::all);
  const std::vector<Interrupt>& interrupts = imported.recording.interrupts;
  if (interrupts.empty()) GTEST_SKIP() << "has no interrupts";
  const PlacementReport report = place_interrupts(imported);
  EXPECT_FALSE(report.divergence) << report.divergence->reason;
  ASSERT_EQ(report.events.size(), interrupts.size());
  for (std::size_t i = 0; i < interrupts.size(); ++i) {
    EXPECT_STREQ(placement_name(report.events[i].placement), "unique") << i;
    EXPECT_EQ(interrupts[i].position, counted.recording.interrupts[i].position) << i;
  }
  MachineRun run(capture, imported, {});
  if (has_specific_results(capture)) run.golden().tolerate_floating_point();
  run.run();
  EXPECT_EQ(run.report().end, ReplayReport::End::complete) << divergence_text(run.report());
  expect_ground_truth(run);
  std::printf("  %zu interrupts placed; %llu instructions replayed for it, %llu in the run\n",
              report.events.size(), static_cast<unsigned long long>(report.instructions),
              static_cast<unsigned long long>(run.report().instructions));
  EXPECT_LE(report.instructions, 2 * run.report().instructions);
}

/// As if the timer were on the chip: its handler's marker alone says that there was an interrupt.
TEST_P(MachineCaptures, PlacesTimersByTheirHandlersMarker) {
  const MachineCapture& capture = GetParam();
  if (capture.form == 'C') GTEST_SKIP() << "write-back caches hide what interrupts push";
  const ImportedRecording counted = import_machine(capture, IgnoreCounts::all_but_interrupts);
  const std::vector<Interrupt>& truth = counted.recording.interrupts;
  if (truth.empty()) GTEST_SKIP() << "has no interrupts";
  ImportedRecording imported = import_with_hidden_timer(capture);
  const std::vector<Interrupt>& interrupts = imported.recording.interrupts;
  ASSERT_EQ(interrupts.size(), truth.size());
  const auto hidden = std::count_if(interrupts.begin(), interrupts.end(), [](const Interrupt& i) {
    return i.kind == Interrupt::Kind::on_chip;
  });
  EXPECT_GT(hidden, 0);
  const PlacementReport report = place_interrupts(imported);
  EXPECT_FALSE(report.divergence) << report.divergence->reason;
  ASSERT_EQ(report.events.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    EXPECT_STREQ(placement_name(report.events[i].placement), "unique") << i;
    EXPECT_EQ(interrupts[i].position, truth[i].position) << i;
    EXPECT_EQ(interrupts[i].vector, truth[i].vector) << i;
  }
  MachineRun run(capture, imported, {});
  if (has_specific_results(capture)) run.golden().tolerate_floating_point();
  run.run();
  EXPECT_EQ(run.report().end, ReplayReport::End::complete) << divergence_text(run.report());
  expect_ground_truth(run);
  std::printf(
      "  %zu interrupts placed, %lld of them by a marker; %llu instructions replayed for it, "
      "%llu in the run\n",
      report.events.size(), static_cast<long long>(hidden),
      static_cast<unsigned long long>(report.instructions),
      static_cast<unsigned long long>(run.report().instructions));
  EXPECT_LE(report.instructions, 3 * run.report().instructions);
}

/// Behind a write-back cache not all can be told apart; but what is called certain is, and where
/// the places that fit are listed, the right one is among them.
TEST_P(MachineCaptures, NarrowsInterruptsBehindAWriteBackCache) {
  const MachineCapture& capture = GetParam();
  if (capture.form != 'C') GTEST_SKIP() << "has no write-back cache";
  const ImportedRecording counted = import_machine(capture, IgnoreCounts::all_but_interrupts);
  ImportedRecording imported = import_machine(capture, IgnoreCounts::all);
  if (imported.recording.interrupts.empty()) GTEST_SKIP() << "has no interrupts";
  const PlacementReport report = place_interrupts(imported);
  ASSERT_EQ(report.events.size(), counted.recording.interrupts.size());
  std::uint64_t right = 0;
  std::vector<std::uint64_t> classes;
  for (const PlacedEvent& e : report.events) {
    const Position truth = counted.recording.interrupts[e.interrupt].position;
    if (e.placement == Placement::none) continue;
    right += e.position == truth ? 1 : 0;
    classes.push_back(e.candidates);
    if (e.placement == Placement::unique) {
      EXPECT_EQ(e.position, truth) << e.interrupt;
    }
    if (e.more || e.candidates != e.others.size() + 1) continue;
    const bool listed =
        e.position == truth || std::find(e.others.begin(), e.others.end(), truth) != e.others.end();
    EXPECT_TRUE(listed) << e.interrupt << " at " << truth.instruction;
  }
  EXPECT_FALSE(classes.empty());
  std::sort(classes.begin(), classes.end());
  std::printf(
      "  %zu of %zu placed: %llu unique, %llu ambiguous; %llu at the right place; %llu "
      "instructions replayed; places that fit:",
      classes.size(), report.events.size(),
      static_cast<unsigned long long>(report.count(Placement::unique)),
      static_cast<unsigned long long>(report.count(Placement::ambiguous)),
      static_cast<unsigned long long>(right), static_cast<unsigned long long>(report.instructions));
  for (const std::uint64_t n : classes) std::printf(" %llu", static_cast<unsigned long long>(n));
  std::printf("\n");
  EXPECT_LE(report.instructions, 3 * declared_instructions(capture));
}

/// x87 transcendentals and RCPPS: taken over from the bus and counted, or named; never silent.
TEST_P(MachineCaptures, AdoptsWhatImplementationsDifferIn) {
  const MachineCapture& capture = GetParam();
  if (!has_specific_results(capture)) GTEST_SKIP() << "has no such results";
  const ImportedRecording imported = import_machine(capture, IgnoreCounts::none);
  MachineRun run(capture, imported, {});
  run.golden().tolerate_floating_point();
  run.run();
  EXPECT_EQ(run.report().end, ReplayReport::End::complete) << divergence_text(run.report());
  const std::uint64_t specific = run.machine().model_specific_results();
  std::printf("  %llu results, adopted %llu, %llu instructions differ in values\n",
              static_cast<unsigned long long>(specific),
              static_cast<unsigned long long>(run.totals().adopted),
              static_cast<unsigned long long>(run.golden().tolerated()));
  EXPECT_GT(specific, 0u);
  // What a write-back cache never showed cannot be taken over: memory keeps the replay's results.
  const bool all_shown = run.golden().tolerated() == 0;
  if (run.report().end == ReplayReport::End::complete && all_shown) expect_final_state(run);
  expect_ground_truth(run);

  VerifierOptions strict;
  strict.policy.strict = true;
  MachineRun strict_run(capture, imported, strict);
  strict_run.golden().tolerate_floating_point();
  strict_run.run();
  // The host's unit may compute what the machine did (Intel's RCPPS, which Bochs has a table of),
  // or a write-back cache may have kept all of the results to itself until the capture ended.
  if (run.totals().adopted == 0) {
    EXPECT_TRUE(all_shown || capture.form == 'C');
    EXPECT_EQ(strict_run.report().end, ReplayReport::End::complete);
    return;
  }
  ASSERT_EQ(strict_run.report().end, ReplayReport::End::diverged);
  const Divergence& d = *strict_run.report().divergence;
  EXPECT_NE(d.transaction, ~std::uint64_t{0});
  EXPECT_FALSE(d.expected.empty());
  EXPECT_FALSE(d.found.empty());
  std::printf("  strict: %s\n", divergence_text(strict_run.report()).c_str());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MachineCaptures);
INSTANTIATE_TEST_SUITE_P(, MachineCaptures, testing::ValuesIn(acceptance_captures(!is_full_run())),
                         [](const auto& test) { return capture_text(test.param); });

}  // namespace
}  // namespace citcat::test
