#pragma once
// A byte sink that knows that the bytes it takes are KT records.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/io/byte_sink.h"
#include "formats/kt/kt_note.h"

namespace citcat {

/// A sink for KT. write() may split records anywhere.
class TraceSink : public ByteSink {
 public:
  /// The same as write() for whole records, `instructions` of which are instructions: saves sinks
  /// that need to know from parsing them.
  virtual void write_records(std::span<const std::uint8_t> records,
                             std::uint64_t /*instructions*/) {
    write(records);
  }
  /// Records of the wide form are going to follow, from the beginning of the trace or a later
  /// place. False where it cannot hold them.
  virtual bool takes_wide() { return false; }
  /// Whether note() has any effect.
  virtual bool keeps_notes() const { return false; }
  /// A note on KT: before the bytes after `at` are written, in the order of `at`.
  virtual void note(const KtNote&) {}
};

/// `sink` as a TraceSink; null if it is a plain byte sink.
TraceSink* as_trace_sink(ByteSink& sink);

/// Whether files of this name are known to hold KT: "*.kt", "*.kt.zst" and "*.ktz".
bool has_trace_ending(const std::string& path);

/// Opens the sink that a path names: "*.kt.zst" frames with an index (formats/kt/kt_zstd.h),
/// "*.ktz" a stored trace (formats/kt/kt_store.h), anything else as open_sink() has it.
std::unique_ptr<ByteSink> open_trace_sink(const std::string& path);

}  // namespace citcat
