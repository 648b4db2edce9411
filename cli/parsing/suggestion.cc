#include "cli/parsing/suggestion.h"

#include <algorithm>
#include <vector>

namespace citcat {
namespace {

std::string_view without_dashes(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return word;
}

/// The only one of `known` that begins with `word`.
std::string only_completion(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kFewest = 3;
  if (without_dashes(word).size() < kFewest) return "";
  std::string found;
  for (const std::string& candidate : known) {
    if (!candidate.starts_with(word)) continue;
    if (!found.empty()) return "";
    found = candidate;
  }
  return found;
}

}  // namespace

unsigned edit_distance(std::string_view a, std::string_view b) {
  // Rows of the usual table: of two letters ago, of the last one, and the one being made.
  std::vector<unsigned> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<unsigned>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<unsigned>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const unsigned replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  if (std::string completion = only_completion(word, known); !completion.empty()) return completion;
  const std::size_t letters = without_dashes(word).size();
  // A third of the letters may be wrong, but not the only letter of an option.
  const auto bound = static_cast<unsigned>(letters < 2 ? 0 : std::max<std::size_t>(1, letters / 3));
  std::string nearest;
  unsigned smallest = bound + 1;
  for (const std::string& candidate : known) {
    const unsigned distance = edit_distance(word, candidate);
    if (distance >= smallest) continue;
    smallest = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "" : " (did you mean " + nearest + "?)";
}

}  // namespace citcat
