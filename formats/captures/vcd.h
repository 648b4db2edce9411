#pragma once
// Value change dumps (IEEE 1364-2005, clause 18): what simulators and many analysers write.

#include <memory>
#include <string>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// Opens a dump. Its variables become channels, vectors one channel a bit, named as in the dump (a
/// name that occurs in several scopes gets its scope before it). Sample numbers are times in the
/// units of $timescale, or samples where a comment of the writer gives the sample rate. Levels x
/// and z read as 0 and are counted in warnings(). FormatError with the line number for anything
/// the standard does not allow.
std::unique_ptr<SampleSource> open_vcd(std::unique_ptr<InputStream> input);

}  // namespace citcat
