#pragma once
// A Report as bytes: how a tool's process hands its results over.

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "tools/host/report.h"

namespace citcat::tools {

void write_report(const Report& report, ByteWriter& out);
/// What write_report() wrote. Throws FormatError for anything else: the process that wrote it is
/// not to be believed.
Report read_report(ByteReader& in);

}  // namespace citcat::tools
