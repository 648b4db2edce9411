// Replays single-step tests and prints what differs, by form and by rule. Flags that a suite leaves
// open are in the metadata.json beside its files, or in the one that is named.
//
//   silicon [--limit N] [--masks metadata.json] FILE.MOO...
//
// Exit code 1 when a difference has no explanation, 2 on wrong use.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>

#include "silicon/suite_run.h"

namespace citcat::silicon {
namespace {

constexpr std::uint16_t kAllFlags = 0xffff;

struct Totals {
  std::array<unsigned, 4> counts{};
  std::map<std::string, unsigned> rules;
};

void print_row(const std::string& form, const std::array<unsigned, 4>& counts,
               const std::map<std::string, unsigned>& rules) {
  std::printf("| %-6s | %6u | %6u | %6u | %6u |", form.c_str(), counts[0], counts[1], counts[2],
              counts[3]);
  for (const auto& [rule, count] : rules) std::printf(" %s %u", rule.c_str(), count);
  std::printf(" |\n");
}

int run(int argc, char** argv) {
  std::size_t limit = ~std::size_t{0};
  std::filesystem::path named_masks;
  std::map<std::filesystem::path, std::map<std::string, std::uint16_t>> suites;
  Totals totals;
  std::printf("| form | equal | masked | by rule | unexplained | rules |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--limit" && i + 1 < argc) {
      limit = std::stoul(argv[++i]);
      continue;
    }
    if (argument == "--masks" && i + 1 < argc) {
      named_masks = argv[++i];
      continue;
    }
    const std::string form = form_of(argument);
    const MooFile file = read_moo(argument);
    const std::filesystem::path masks =
        named_masks.empty() ? std::filesystem::path(argument).parent_path() / "metadata.json"
                            : named_masks;
    const auto [suite, is_new] = suites.try_emplace(masks);
    if (is_new) suite->second = read_flag_masks(masks.string());
    const auto mask = suite->second.find(form);
    const std::uint16_t compared = mask != suite->second.end() ? mask->second : kAllFlags;
    const FormResult result = run_form(file, form, compared, limit);
    print_row(form, result.counts, result.rules);
    for (const std::string& line : result.unexplained) {
      std::fprintf(stderr, "%s %s\n", form.c_str(), line.c_str());
    }
    for (std::size_t k = 0; k < 4; ++k) totals.counts[k] += result.counts[k];
    for (const auto& [rule, count] : result.rules) totals.rules[rule] += count;
    std::fflush(stdout);
  }
  print_row("total", totals.counts, totals.rules);
  return totals.counts[static_cast<std::size_t>(Outcome::unexplained)] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace citcat::silicon

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: silicon [--limit N] [--masks metadata.json] FILE.MOO...\n");
    return 2;
  }
  try {
    return citcat::silicon::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "silicon: %s\n", error.what());
    return 2;
  }
}
