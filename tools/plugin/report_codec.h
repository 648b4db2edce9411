#pragma once
// A Report as bytes: how a tool's process hands its results over.

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "tools/host/report.h"

namespace citcat::tools {

void write_report(const Report& report, ByteWriter& out);
/// Adds what write_report() wrote to `report`. Throws FormatError for anything else: the process that
/// wrote it is not to be believed.
void read_report(ByteReader& in, Report& report);

}  // namespace citcat::tools
