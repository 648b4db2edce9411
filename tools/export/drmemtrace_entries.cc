#include "tools/export/drmemtrace_entries.h"

#include <array>
#include <cstring>
#include <utility>

namespace citcat::tools {
namespace {

/// DynamoRIO's reader hands it on to tools (reader_t::process_input_entry(), reader/reader.cpp).
bool is_record(DrEntry type, std::uint16_t size) {
  switch (type) {
    case DrEntry::header:
    case DrEntry::footer:
    case DrEntry::thread:
    case DrEntry::process:
    case DrEntry::encoding:
      return false;
    case DrEntry::marker:
      return size != static_cast<std::uint16_t>(DrMarker::branch_target) &&
             size != static_cast<std::uint16_t>(DrMarker::record_ordinal);
    default:
      return true;
  }
}

}  // namespace

DrmemtraceEntries::DrmemtraceEntries(std::size_t address_bytes,
                                     std::unique_ptr<DrmemtraceOutput> output)
    : address_bytes_(address_bytes),
      output_(std::move(output)),
      chunk_(output_->chunk_instructions()) {
  if (chunk_ != 0) output_->begin_chunk(chunks_++);
}

void DrmemtraceEntries::flush() {
  output_->write(buffer_);
  buffer_.clear();
}

void DrmemtraceEntries::put(DrEntry type, std::uint16_t size, std::uint64_t value) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::array<std::uint8_t, 12> bytes{};
  const auto number = static_cast<std::uint16_t>(type);
  std::memcpy(bytes.data(), &number, 2);
  std::memcpy(bytes.data() + 2, &size, 2);
  std::memcpy(bytes.data() + 4, &value, address_bytes_);
  const auto end = static_cast<std::ptrdiff_t>(4 + address_bytes_);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + end);
  if (buffer_.size() >= kPiece) flush();
}

void DrmemtraceEntries::entry(DrEntry type, std::uint16_t size, std::uint64_t value) {
  if (is_record(type, size)) ++records_;
  put(type, size, value);
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
