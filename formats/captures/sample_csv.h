#pragma once
// Samples as text tables: what libsigrok, DSView and Saleae Logic export as comma-separated values,
// and tables of states as other analysers list them, with commas or in printed columns. See
// docs/formats/csv.md.

#include <memory>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// Opens a table. A column is one channel if its first value is a level, else as many channels as
/// its values have bits: column ADDR becomes channels ADDR0, ADDR1, ... (table_cells.h). A column
/// of times is no channel; where its unit is known it says which sample a row is. Else every row
/// is one. FormatError with the line number for anything else.
std::unique_ptr<SampleSource> open_sample_csv(std::unique_ptr<InputStream> input);

}  // namespace citcat
