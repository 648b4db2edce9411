#pragma once
// Finds the word that a misspelt one was probably meant to be.

#include <span>
#include <string>
#include <string_view>

namespace citcat {

/// Insertions, deletions, replacements and swaps of neighbours that make `a` of `b` (optimal string
/// alignment distance).
unsigned edit_distance(std::string_view a, std::string_view b);

/// The one of `known` that `word` is most like; empty when none is near enough to be worth naming.
/// A word of at least three letters that only one of `known` begins with counts as near.
std::string nearest_word(std::string_view word, std::span<const std::string> known);

/// " (did you mean WORD?)" for the nearest of `known`, or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace citcat
