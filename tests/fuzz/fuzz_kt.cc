// KtReader on any bytes; what it accepts must come out of KtWriter as it went in, but for padding.

#include <cstdint>
#include <cstdlib>

#include "formats/kt/kt.h"
#include "fuzz/fuzz_target.h"

namespace {

/// Counts bytes; the fuzzer's process needs no file.
void write_again(citcat::KtWriter& writer, const citcat::KtRecord& record) {
  using Kind = citcat::KtRecord::Kind;
  if (record.kind == Kind::instruction) writer.instruction(record.instruction);
  if (record.kind == Kind::process) writer.process(record.pid);
  if (record.kind == Kind::translation) writer.translation(record.frame, record.page);
}

}  // namespace

CITCAT_FUZZ_TARGET(kt) {
  citcat::NullSink sink;
  citcat::KtWriter writer(sink);
  try {
    citcat::KtReader reader({data, size}, "input");
    citcat::KtRecord record;
    while (reader.next(record)) {
      write_again(writer, record);
      if (writer.size() != reader.offset()) std::abort();
    }
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
