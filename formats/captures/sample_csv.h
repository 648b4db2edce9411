#pragma once
// Samples as text tables: what libsigrok, DSView and Saleae Logic export as comma-separated values,
// and tables of states as other analysers list them, with commas or in printed columns. See
// docs/formats/csv.md.

#include <memory>
#include <span>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// Opens a table. A column is one channel where its first value is 0 or 1, else as many channels
/// as its first hexadecimal value has bits: column ADDR becomes channels ADDR0, ADDR1, ... A column
/// of times is no channel. Every row is a sample, except in files of changes (DSView, Saleae),
/// where the time tells the number. FormatError with the line number for anything else.
std::unique_ptr<SampleSource> open_sample_csv(std::unique_ptr<InputStream> input);

/// 0 to 100: how much the beginning of a file looks like such a table.
int rate_sample_csv(std::span<const std::uint8_t> prefix);

}  // namespace citcat
