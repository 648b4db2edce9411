#include "formats/idtrace/idtrace_writer.h"

#include "formats/io/error.h"

namespace citcat {

IdtraceWriter::IdtraceWriter(ByteSink& sink, IdtraceKind kind) : sink_(sink), kind_(kind) {
  buffer_.reserve(kPiece + kIdtraceMaxEntryBytes);
}

void IdtraceWriter::write(const IdtraceEntry& entry) {
  CITCAT_ASSERT(idtrace_has(kind_, entry.tag));
  CITCAT_ASSERT((entry.size_code != 0) == is_idtrace_reference(entry.tag));
  buffer_.push_back(static_cast<std::uint8_t>(static_cast<unsigned>(entry.tag) | entry.size_code));
  for (std::size_t i = 0; i + 5 < entry.bytes(); ++i) buffer_.push_back(entry.opcode[i]);
  for (int shift = 0; shift < 32; shift += 8) {
    buffer_.push_back(static_cast<std::uint8_t>(entry.value >> shift));
  }
  ++entries_;
  if (buffer_.size() >= kPiece) flush();
}

void IdtraceWriter::write_piece(std::span<const std::uint8_t> entries) {
  flush();
  sink_.write(entries);
}

void IdtraceWriter::flush() {
  if (buffer_.empty()) return;
  sink_.write(buffer_);
  buffer_.clear();
}

}  // namespace citcat
