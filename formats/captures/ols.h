#pragma once
// Files of the "Logic Sniffer" clients (OLS, SUMP): text, one line for each sample or change.

#include <memory>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// Opens such a file. Its channels have no names: they are called "0", "1", ... FormatError with
/// the line number for anything else.
std::unique_ptr<SampleSource> open_ols(std::unique_ptr<InputStream> input);

}  // namespace citcat
