// One random fault at a time in what the replay is made from or checked against: it must be
// noticed, or be shown to have had no effect.
//
// The ordinary run injects a few dozen; CITCAT_ACCEPTANCE=full (scripts/test-injection) hundreds,
// and prints the table of docs/injection.md.

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

constexpr std::uint32_t kInjectionSeed = 20240229;

struct InjectedRow {
  int injected = 0, refused = 0, suspected = 0, no_effect = 0, latent = 0, crashed = 0;
  std::vector<std::int64_t> distances;
  std::vector<std::string> latent_texts;
};
using Table = std::map<FaultKind, InjectedRow>;

void inject_into(FaultInjector& injector, int each, std::mt19937& random, Table& table) {
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    for (int i = 0; i < each; ++i) {
      const auto what = static_cast<FaultKind>(kind);
      const FaultOutcome outcome = injector.inject(what, random);
      InjectedRow& row = table[what];
      if (outcome.result != FaultOutcome::Result::impossible) ++row.injected;
      switch (outcome.result) {
        case FaultOutcome::Result::impossible:
          break;
        case FaultOutcome::Result::refused:
          ++row.refused;
          break;
        case FaultOutcome::Result::noticed:
          row.distances.push_back(outcome.distance);
          break;
        case FaultOutcome::Result::suspected:
          ++row.suspected;
          break;
        case FaultOutcome::Result::no_effect:
          ++row.no_effect;
          break;
        case FaultOutcome::Result::crashed:
          ++row.crashed;
          ADD_FAILURE() << fault_name(what) << ": " << outcome.text;
          break;
        case FaultOutcome::Result::latent:
          ++row.latent;
          row.latent_texts.push_back(outcome.text);
          break;
      }
      if (std::getenv("CITCAT_INJECTION_VERBOSE") != nullptr) {
        fmt::print("    {:<22} {} {:>8} {}\n", fault_name(what), static_cast<int>(outcome.result),
                   outcome.distance, outcome.text);
      }
    }
  }
}

void print_table(const std::string& title, Table& table) {
  fmt::print("\n### {}\n\n", title);
  fmt::print(
      "| fault | injected | refused | noticed | nearest | median | 90 % | farthest | "
      "suspected | no effect | latent |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (auto& [kind, row] : table) {
    auto& d = row.distances;
    std::sort(d.begin(), d.end());
    const auto at = [&](std::size_t percent) {
      return d.empty() ? std::string("-") : std::to_string(d[(d.size() - 1) * percent / 100]);
    };
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", fault_name(kind),
               row.injected, row.refused, d.size(), at(0), at(50), at(90), at(100), row.suspected,
               row.no_effect, row.latent);
  }
  for (const auto& [kind, row] : table) {
    for (const std::string& text : row.latent_texts) {
      fmt::print("latent: {}: {}\n", fault_name(kind), text);
    }
  }
}

/// In a write-back cache the bus does not show every write, and a line that is not seen to be
/// written back is no contradiction.
/// `counted`: the capture counts instructions, and so tells which transfers one of them makes.
void expect_nothing_slips_through(const Table& table, bool write_back, bool counted) {
  int injected = 0;
  for (const auto& [kind, row] : table) {
    injected += row.injected;
    const bool must_notice =
        kind == FaultKind::write_bit || (kind == FaultKind::write_missing && !write_back) ||
        kind == FaultKind::interrupt_missing || kind == FaultKind::interrupt_vector ||
        kind == FaultKind::interrupt_shifted || (kind == FaultKind::writes_swapped && counted);
    if (must_notice) {
      EXPECT_EQ(row.suspected + row.no_effect + row.latent, 0) << fault_name(kind);
    }
    // But for page walks, whose number is the processor's own business, and what is fetched while
    // the queue is empty.
    if (kind == FaultKind::transfer_twice) {
      EXPECT_LE(row.no_effect * 5, row.injected) << fault_name(kind);
    }
  }
  EXPECT_GT(injected, 0);
}

class InjectionMachine : public testing::TestWithParam<InjectedCapture> {};

TEST_P(InjectionMachine, FaultsAreNoticedOrHaveNoEffect) {
  if (machine_folder().empty()) GTEST_SKIP() << "shared/data/machine is not there";
  if (is_large(GetParam()) && !is_full_run()) GTEST_SKIP() << "runs with CITCAT_ACCEPTANCE=full";
  FaultInjector injector = open_machine(GetParam());
  const auto [name, form] = GetParam();
  std::mt19937 random(kInjectionSeed);
  Table table;
  inject_into(injector, is_full_run() ? (is_large(GetParam()) ? 6 : 30) : 2, random, table);
  print_table(fmt::format("{}, form {} ({} instructions, seed {})", name, form,
                          injector.instructions(), kInjectionSeed),
              table);
  expect_nothing_slips_through(table, form == 'C', true);
}

INSTANTIATE_TEST_SUITE_P(, InjectionMachine, testing::ValuesIn(kInjectedCaptures),
                         [](const auto& at) {
                           return std::string(at.param.first) + "_" + at.param.second;
                         });

TEST(InjectionIbm5150, FaultsAreNoticedOrHaveNoEffect) {
  FaultInjector injector = open_ibm5150();
  std::mt19937 random(kInjectionSeed);
  Table table;
  inject_into(injector, is_full_run() ? 30 : 4, random, table);
  print_table(
      fmt::format("IBM 5150 ({} instructions, seed {})", injector.instructions(), kInjectionSeed),
      table);
  expect_nothing_slips_through(table, false, false);
}

}  // namespace
}  // namespace citcat::test
