#pragma once
// Samples as text tables: what libsigrok, DSView and Saleae Logic export as comma-separated values,
// and tables of states as other analysers list them, with commas or in printed columns. See
// docs/formats/csv.md.

#include <memory>
#include <span>
#include <string>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// Opens a table. A column is one channel where its first value is 0 or 1, else as many channels
/// as its first hexadecimal value has bits: column ADDR becomes channels ADDR0, ADDR1, ... A column
/// of times is no channel; where its unit is known it says which sample a row is. Else every row
/// is one. FormatError with the line number for anything else.
std::unique_ptr<SampleSource> open_sample_csv(std::unique_ptr<InputStream> input);

/// 0 to 100: how much the beginning of a file looks like such a table.
int rate_sample_csv(std::span<const std::uint8_t> prefix);
/// Why the beginning of a file, which looks like a table, is not taken for one: line and column;
/// "" where it does not look like one.
std::string complaint_of_table(std::span<const std::uint8_t> prefix);

}  // namespace citcat
