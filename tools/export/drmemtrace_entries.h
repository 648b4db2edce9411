#pragma once
// The entries of one file of drmemtrace, cut into chunks where the file is an archive. Format,
// version and source: docs/export/drmemtrace.md.

#include <cstddef>
#include <cstdint>
#include <cstring>
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

  void entry(DrEntry type, std::uint16_t size, std::uint64_t value) {
    if (is_record(type, size)) ++records_;
    put(type, size, value);
  }
  void marker(DrMarker type, std::uint64_t value);
  /// A marker of the time, and one of the processor, which each chunk repeats.
  void time(std::uint64_t timestamp, std::uint64_t processor);
  /// What comes next belongs to an instruction that is fetched. True where a chunk begins with it,
  /// which then has to stand alone.
  bool begin_instruction();
  /// Entries that are written where they go: of instructions that are fetched, none of which begins
  /// a chunk.
  class Room {
   public:
    Room(std::uint8_t* at, std::size_t entry_bytes) : at_(at), entry_bytes_(entry_bytes) {}
    void add(DrEntry type, std::uint16_t size, std::uint64_t value) {
      const auto head = static_cast<std::uint32_t>(type) | std::uint32_t{size} << 16;
      std::memcpy(at_, &head, sizeof head);
      std::memcpy(at_ + sizeof head, &value, sizeof value);
      at_ += entry_bytes_;
    }
    const std::uint8_t* end() const { return at_; }

   private:
    std::uint8_t* at_;
    std::size_t entry_bytes_;
  };
  /// Whether so many instructions, with so many entries, have room.
  bool has_room(std::size_t instructions, std::size_t entries) const {
    const bool in_chunk = chunk_ == 0 || in_chunk_ + instructions <= chunk_;
    return in_chunk && used_ + entries * (4 + address_bytes_) < kPiece;
  }
  Room room() { return {buffer_.data() + used_, 4 + address_bytes_}; }
  /// They were written; of these entries, tools see so many.
  void wrote(const Room& room, std::size_t instructions, std::size_t records) {
    used_ = static_cast<std::size_t>(room.end() - buffer_.data());
    in_chunk_ += instructions;
    instructions_ += instructions;
    records_ += records;
  }
  /// Fetched so far.
  std::uint64_t instructions() const { return instructions_; }
  std::uint64_t chunk_instructions() const { return chunk_; }
  std::size_t address_bytes() const { return address_bytes_; }
  void finish();

 private:
  /// DynamoRIO's reader hands it on to tools (reader_t::process_input_entry(), reader/reader.cpp).
  static bool is_record(DrEntry type, std::uint16_t size) {
    if (type == DrEntry::marker) {
      return size != static_cast<std::uint16_t>(DrMarker::branch_target) &&
             size != static_cast<std::uint16_t>(DrMarker::record_ordinal);
    }
    return type != DrEntry::header && type != DrEntry::footer && type != DrEntry::thread &&
           type != DrEntry::process && type != DrEntry::encoding;
  }

  void put(DrEntry type, std::uint16_t size, std::uint64_t value) {
    std::uint8_t* const to = buffer_.data() + used_;
    std::memcpy(to, &type, 2);
    std::memcpy(to + 2, &size, 2);
    std::memcpy(to + 4, &value, 8);
    used_ += 4 + address_bytes_;
    if (used_ >= kPiece) flush();
  }
  void begin_chunk();
  void flush();

  static constexpr std::size_t kPiece = std::size_t{1} << 16, kLongest = 12;

  std::size_t address_bytes_;
  std::unique_ptr<DrmemtraceOutput> output_;
  std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(kPiece + kLongest);
  std::size_t used_ = 0;            ///< bytes of it
  std::uint64_t chunk_;             ///< instructions of one
  std::uint64_t chunks_ = 0;        ///< begun
  std::uint64_t in_chunk_ = 0;      ///< instructions
  std::uint64_t instructions_ = 0;  ///< in all of them
  std::uint64_t records_ = 0;       ///< that tools see
  std::uint64_t timestamp_ = 0, processor_ = 0;
};

}  // namespace citcat::tools
