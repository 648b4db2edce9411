#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/idtrace/trace_entry.h"
#include "formats/io/byte_sink.h"

namespace citcat {

/// Writes entries of a `.trc` file to a sink, in large pieces that hold whole entries.
class IdtraceWriter {
 public:
  /// The sink must outlive the writer.
  IdtraceWriter(ByteSink& sink, IdtraceKind kind);
  IdtraceWriter(const IdtraceWriter&) = delete;
  IdtraceWriter& operator=(const IdtraceWriter&) = delete;

  IdtraceKind kind() const { return kind_; }
  /// An entry that traces of this kind have; any other is our own mistake.
  void write(const IdtraceEntry& entry);
  /// Entries as another writer of the kind handed them to its sink, a piece at a time.
  void write_piece(std::span<const std::uint8_t> entries);
  std::uint64_t entries() const { return entries_; }
  /// Hands everything to the sink. The destructor does not: call it before finishing the sink.
  void flush();

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 16;

  ByteSink& sink_;
  IdtraceKind kind_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t entries_ = 0;
};

}  // namespace citcat
