#pragma once

#include <memory>
#include <string>

#include "events/recording.h"
#include "formats/io/input.h"

namespace citcat {

/// Reads the values that cross no bus, as a monitor that knows them wrote them: CSV with the header
/// `icount,op,eip,eax,ebx,ecx,edx`. One line for each RDTSC, RDMSR, WRMSR, CPUID, RDPMC, RDTSCP,
/// RDRAND or RDSEED, in order; icount (decimal) is the instruction's own index since the start of
/// the capture, empty when it was not counted; eip (of up to 64 bits) and the registers after the
/// instruction are hexadecimal.
/// Compressed files are read as they are. Throws FormatError with the line number.
InternalReads load_side_values(const std::string& path);
InternalReads read_side_values(std::unique_ptr<InputStream> input);

}  // namespace citcat
