#pragma once
// Where KT goes: a sink that knows of the bytes it takes that they are records.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/io/byte_sink.h"
#include "formats/kt/kt_note.h"

namespace citcat {

/// A sink of KT, given whole records or any pieces of them.
class TraceSink : public ByteSink {
 public:
  /// The same as write(), of whole KT records, of which so many are instructions: for those that
  /// would have to look otherwise.
  virtual void write_records(std::span<const std::uint8_t> records,
                             std::uint64_t /*instructions*/) {
    write(records);
  }
  /// It keeps what KT has no records for: note() is of use.
  virtual bool keeps_notes() const { return false; }
  /// A note on KT: before the bytes behind `at` are written, in the order of `at`.
  virtual void note(const KtNote&) {}
};

/// `sink` as a sink of KT; null where it takes the records for plain bytes.
TraceSink* as_trace_sink(ByteSink& sink);

/// The sink for KT that a path stands for: "*.kt.zst" frames with an index (formats/kt/kt_zstd.h),
/// "*.ktz" a stored trace (formats/kt/kt_store.h), anything else as open_sink() has it.
std::unique_ptr<ByteSink> open_trace_sink(const std::string& path);

}  // namespace citcat
