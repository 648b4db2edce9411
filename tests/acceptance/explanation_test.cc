// One random fault at a time, as in injection_test.cc; of those that the replay notices, what does
// `explain` say?
//
// The ordinary run explains one fault of each kind, in one of two captures; CITCAT_ACCEPTANCE=full
// (scripts/test-explanation) some hundreds, and prints the table of docs/explain.md.
// CITCAT_INJECTION_KIND=N takes only faults of that number (FaultKind), CITCAT_INJECTION_FROM=N
// only from that one on, CITCAT_INJECTION_EACH=N so many of each, CITCAT_INJECTION_VERBOSE=1 prints
// each.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "acceptance/fault_injection.h"
#include "acceptance/machine_run.h"
#include "unit/capture/machine_data.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kFaultSeed = 19961121;

struct ExplainedRow {
  int explained = 0, first = 0, tied = 0, top_three = 0, named = 0, repairable = 0, repaired = 0;
};

/// What was read in transactions that the capture lacks nobody knows, nor what was before its
/// state.
bool is_repairable(FaultKind kind) {
  return kind != FaultKind::samples_cut && kind != FaultKind::start_late &&
         kind != FaultKind::start_early;
}

/// A divergence whose reason is its own explanation has no cause to be tried.
bool is_explained(FaultKind kind) {
  return kind != FaultKind::transfer_twice && kind != FaultKind::writes_swapped;
}

/// Trials take long, those of the IBM 5150 longest: each day one of each kind that this divides,
/// with the remainder that a capture has for its own.
struct Kinds {
  int divisor = 1, remainder = 0;
  bool takes(int kind) const { return kind % divisor == remainder; }
};
constexpr Kinds kAllKinds{};
/// For at least nine in ten faults the true cause is ranked first, or nothing in the capture tells
/// it from the first. Where it is first, it repairs the run.
void explain_faults(const std::string& title, FaultInjector& injector, int each, Kinds kinds) {
  std::mt19937 random(kFaultSeed);
  std::map<FaultKind, ExplainedRow> table;
  ExplainedRow all;
  const bool verbose = std::getenv("CITCAT_INJECTION_VERBOSE") != nullptr;
  const char* const many = std::getenv("CITCAT_INJECTION_EACH");
  if (many != nullptr) each = std::atoi(many);
  const char* const only = std::getenv("CITCAT_INJECTION_KIND");
  const char* const begin = std::getenv("CITCAT_INJECTION_FROM");
  const int from = begin != nullptr ? std::atoi(begin) : 0;
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    if (!is_explained(static_cast<FaultKind>(kind)) || kind < from ||
        (only != nullptr ? std::atoi(only) != kind : !kinds.takes(kind)))
      continue;
    const auto what = static_cast<FaultKind>(kind);
    for (int i = 0; i < each; ++i) {
      const FaultOutcome outcome = injector.inject(what, random, true);
      ASSERT_NE(outcome.result, FaultOutcome::Result::crashed) << outcome.text;
      if (!outcome.diagnosis) continue;
      const Diagnosis& d = *outcome.diagnosis;
      for (ExplainedRow* row : {&table[what], &all}) {
        ++row->explained;
        row->first += d.rank == 1 ? 1 : 0;
        row->tied += d.rank > 1 && d.tied ? 1 : 0;
        row->top_three += d.rank >= 1 && d.rank <= 3 ? 1 : 0;
        row->named += d.rank != 0 ? 1 : 0;
        row->repairable += is_repairable(what) ? 1 : 0;
        row->repaired += d.repaired ? 1 : 0;
      }
      if (verbose || d.rank != 1 || !d.repaired) {
        fmt::print("    {:<22} rank {} {} {}\n        taken for {}\n", fault_name(what), d.rank,
                   d.repaired ? "repaired" : "not repaired", outcome.text, d.best);
      }
    }
  }
  fmt::print(
      "\n### {}\n\n"
      "| fault | explained | true cause first | as likely as the first | among three | named "
      "| repaired |\n"
      "|---|---|---|---|---|---|---|\n",
      title);
  for (const auto& [kind, row] : table) {
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", fault_name(kind), row.explained, row.first,
               row.tied, row.top_three, row.named, row.repaired);
  }
  fmt::print("| all | {} | {} | {} | {} | {} | {} |\n", all.explained, all.first, all.tied,
             all.top_three, all.named, all.repaired);
  // Not every capture has what every kind of fault needs.
  if (only == nullptr) {
    EXPECT_GT(all.explained, 0);
  }
  // A few faults do not make a statistic: some of them may be of a kind that nothing tells apart.
  const int may_miss = std::max(2, all.explained / 10);
  EXPECT_LE(all.explained - all.first - all.tied, may_miss);
  EXPECT_LE(all.repairable - all.repaired - all.tied, may_miss);
}

/// Each store of this one is on its bus, as on the bus of the IBM 5150.
const InjectedCapture kOwnStores{"lin_user_tiny", 'A'};

class ExplanationMachine : public testing::TestWithParam<InjectedCapture> {};

TEST_P(ExplanationMachine, RanksTheTrueCauseFirst) {
  if (machine_folder().empty()) GTEST_SKIP() << "shared/data/machine is not there";
  const auto [name, form] = GetParam();
  const bool seldom = is_large(GetParam()) || form == 'B' || GetParam() == kOwnStores;
  if (seldom && !is_full_run()) GTEST_SKIP() << "runs with CITCAT_ACCEPTANCE=full";
  FaultInjector injector = open_machine(GetParam());
  // Two captures share the odd kinds of each day; the sample of the IBM 5150 has even ones.
  const Kinds daily{4, form == 'C' ? 1 : 3};
  explain_faults(fmt::format("{}, form {}", name, form), injector,
                 is_full_run() ? (is_large(GetParam()) ? 3 : 10) : 1,
                 is_full_run() ? kAllKinds : daily);
}

INSTANTIATE_TEST_SUITE_P(, ExplanationMachine, testing::ValuesIn(kInjectedCaptures),
                         [](const auto& at) {
                           return std::string(at.param.first) + "_" + at.param.second;
                         });

TEST(ExplanationIbm5150, RanksTheTrueCauseFirst) {
  FaultInjector injector = open_ibm5150();
  // More kinds where no other capture is there to share them.
  const Kinds daily{machine_folder().empty() ? 2 : 4, 0};
  explain_faults("IBM 5150", injector, is_full_run() ? 10 : 1, is_full_run() ? kAllKinds : daily);
}

}  // namespace
}  // namespace citcat::test
