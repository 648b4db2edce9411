#include "tools/export/drmemtrace_entries.h"

#include <utility>

namespace citcat::tools {
DrmemtraceEntries::DrmemtraceEntries(std::size_t address_bytes,
                                     std::unique_ptr<DrmemtraceOutput> output)
    : address_bytes_(address_bytes),
      output_(std::move(output)),
      chunk_(output_->chunk_instructions()) {
  if (chunk_ != 0) output_->begin_chunk(chunks_++);
}

void DrmemtraceEntries::flush() {
  output_->write({buffer_.data(), used_});
  used_ = 0;
}

void DrmemtraceEntries::marker(DrMarker type, std::uint64_t value) {
  entry(DrEntry::marker, static_cast<std::uint16_t>(type), value);
}

void DrmemtraceEntries::time(std::uint64_t timestamp, std::uint64_t processor) {
  timestamp_ = timestamp;
  processor_ = processor;
  marker(DrMarker::timestamp, timestamp);
  marker(DrMarker::cpu, processor);
}

bool DrmemtraceEntries::begin_instruction() {
  const bool begins = chunk_ != 0 && in_chunk_ == chunk_;
  if (begins) begin_chunk();
  ++in_chunk_;
  ++instructions_;
  return begins;
}

/// As raw2trace_t::open_new_chunk() and emit_new_chunk_header() of DynamoRIO's
/// tracer/raw2trace.cpp do. Readers that go on from the chunk before skip what it repeats.
void DrmemtraceEntries::begin_chunk() {
  marker(DrMarker::chunk_footer, chunks_ - 1);
  flush();
  output_->begin_chunk(chunks_++);
  in_chunk_ = 0;
  const std::pair<DrMarker, std::uint64_t> repeated[] = {{DrMarker::record_ordinal, records_},
                                                         {DrMarker::timestamp, timestamp_},
                                                         {DrMarker::cpu, processor_}};
  for (const auto& [type, value] : repeated) {
    put(DrEntry::marker, static_cast<std::uint16_t>(type), value);
  }
}

void DrmemtraceEntries::finish() {
  flush();
  output_->finish();
}

}  // namespace citcat::tools
