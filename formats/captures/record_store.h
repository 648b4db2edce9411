#pragma once
// A file of stored bus records (docs/formats/capture.md, "Stored records").

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "formats/io/byte_sink.h"
#include "formats/io/zstd_sink.h"
#include "formats/records/record_unpacker.h"

namespace citcat {

/// Writes chunks of packed records. Errors throw IoError; a store destroyed without finish() leaves
/// what its sink leaves of interrupted output, which is read as far as it goes.
class RecordStore {
 public:
  /// "-" is the standard output.
  explicit RecordStore(const std::string& path);

  /// A whole chunk, with its header.
  void put(std::span<const std::uint8_t> chunk);
  /// One record by itself.
  void put_record(std::span<const std::uint8_t, RecordUnpacker::kRecordBytes> record);
  /// Makes the file complete and final.
  void finish();

 private:
  std::uint64_t records_ = 0;
  ZstdSink sink_;
};

/// Whether a file of this name holds stored records: "*.binz".
inline bool is_record_store(const std::string& path) { return path.ends_with(".binz"); }

}  // namespace citcat
