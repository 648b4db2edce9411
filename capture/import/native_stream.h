#pragma once
// Writes a file in the native capture format: its header, records, and the end with their checksums
// (docs/formats/capture.md).

#include <cstdint>
#include <string>

#include "capture/import/bus_record.h"
#include "formats/io/byte_sink.h"

namespace citcat {

/// The fields of the header, as they are stored.
struct NativeHeader {
  std::uint16_t version = 0, flags = 0;
  std::uint8_t cpu = 0, cache = 0, bus_bytes = 0, line_bytes = 0;
  std::uint32_t address_mask = 0;
  std::uint64_t clock_hz = 0;
  std::string monitor;  ///< its name; the format takes 32 bytes of it
};

class NativeStream {
 public:
  /// Writes the header. `sink` is not owned.
  NativeStream(ByteSink& sink, const NativeHeader& header);

  void put(const BusRecord& record);
  /// Writes the end record.
  void finish();
  std::uint64_t records() const { return records_; }

 private:
  ByteSink& sink_;
  std::uint64_t records_ = 0, sum_ = 0, sum_of_sums_ = 0;
};

}  // namespace citcat
