#pragma once
// The entries of one file of drmemtrace, cut into chunks where the file is an archive. Format,
// version and source: docs/export/drmemtrace.md.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tools/export/drmemtrace_format.h"

namespace citcat::tools {

/// Where the bytes of a file go.
class DrmemtraceOutput {
 public:
  virtual ~DrmemtraceOutput() = default;
  /// Is called with large pieces.
  virtual void write(std::span<const std::uint8_t> bytes) = 0;
  /// Instructions of a chunk; 0: there are none.
  virtual std::uint64_t chunk_instructions() const { return 0; }
  /// What comes next is the chunk of that number, from 0.
  virtual void begin_chunk(std::uint64_t /*number*/) {}
  virtual void finish() {}
};

class DrmemtraceEntries {
 public:
  DrmemtraceEntries(std::size_t address_bytes, std::unique_ptr<DrmemtraceOutput> output);

  void entry(DrEntry type, std::uint16_t size, std::uint64_t value);
  void marker(DrMarker type, std::uint64_t value);
  /// A marker of the time, and one of the processor, which each chunk repeats.
  void time(std::uint64_t timestamp, std::uint64_t processor);
  /// What comes next belongs to an instruction that is fetched. True where a chunk begins with it,
  /// which then has to stand alone.
  bool begin_instruction();
  /// Fetched so far.
  std::uint64_t instructions() const { return instructions_; }
  std::uint64_t chunk_instructions() const { return chunk_; }
  std::size_t address_bytes() const { return address_bytes_; }
  void finish();

 private:
  void put(DrEntry type, std::uint16_t size, std::uint64_t value);
  void begin_chunk();
  void flush();

  std::size_t address_bytes_;
  std::unique_ptr<DrmemtraceOutput> output_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t chunk_;             ///< instructions of one
  std::uint64_t chunks_ = 0;        ///< begun
  std::uint64_t in_chunk_ = 0;      ///< instructions
  std::uint64_t instructions_ = 0;  ///< in all of them
  std::uint64_t records_ = 0;       ///< that tools see
  std::uint64_t timestamp_ = 0, processor_ = 0;
};

}  // namespace citcat::tools
