#pragma once
// The native capture format, written from the transactions of another capture
// (docs/formats/capture.md). Monitors write it with capture/writer/.

#include <array>
#include <cstddef>
#include <cstdint>

#include "capture/bus/source.h"
#include "capture/import/bus_record.h"
#include "capture/import/native_stream.h"
#include "formats/io/byte_sink.h"

namespace citcat {

/// Writes one file.
class NativeWriter {
 public:
  /// Writes the header. `info` is of a capture with data, and its bus width is that of all of it;
  /// it must live as long as this. `sink` is not owned.
  NativeWriter(ByteSink& sink, const CaptureInfo& info);

  /// False, and nothing is written, where the format has no records for it.
  bool write(const BusTransaction& transaction);
  /// Says how far the processor has come by the end.
  void write_reached(const Position& position);
  /// The record that ends a capture that was interrupted.
  void write_cut(Ending ending);
  /// Writes the end record.
  void finish() { out_.finish(); }

  /// Whether the clock jumped by more than its 32 bits can express: later times are then too small.
  bool lost_time() const { return lost_time_; }

 private:
  BusRecord pack(const BusTransaction& t, std::size_t part) const;

  NativeStream out_;
  const CaptureInfo& info_;
  std::uint64_t last_clock_ = 0;
  std::uint32_t upper_ = 0;  ///< half of memory addresses, as said last
  bool lost_time_ = false;
};

}  // namespace citcat
