#pragma once
// Recognises a text table of samples by its beginning.

#include <cstdint>
#include <span>
#include <string>

namespace citcat {

/// 0 to 100: how much the beginning of a file looks like such a table.
int rate_sample_csv(std::span<const std::uint8_t> prefix);
/// Why the beginning of a file, which looks like a table, is not taken for one: line and column;
/// "" where it does not look like one.
std::string complaint_of_table(std::span<const std::uint8_t> prefix);

}  // namespace citcat
