// IdtraceReader on any bytes; what it accepts must come out of IdtraceWriter as it went in.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "formats/idtrace/idtrace_reader.h"
#include "formats/idtrace/idtrace_writer.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"
#include "unit/vector_sink.h"

CITCAT_FUZZ_TARGET(idtrace) {
  const std::span<const std::uint8_t> input(data, size);
  citcat::VectorSink sink;
  std::size_t accepted = 0;
  try {
    // Looking at a file must neither throw nor take what it then refuses.
    citcat::idtrace_kind_of(input, true);
    citcat::IdtraceReader reader(std::make_unique<citcat::InputStream>(input, "input"));
    citcat::IdtraceWriter writer(sink, reader.kind());
    citcat::IdtraceEntry entry;
    const bool reader_is_plain = reader.input().compression() == citcat::Compression::none;
    try {
      while (reader.next(entry)) {
        writer.write(entry);
        accepted = static_cast<std::size_t>(reader.offset());
      }
    } catch (const citcat::FormatError&) {
    }
    writer.flush();
    if (sink.all.size() != accepted) std::abort();
    if (reader_is_plain && !std::equal(sink.all.begin(), sink.all.end(), data)) std::abort();
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
