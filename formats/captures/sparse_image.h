#pragma once
// Images of physical memory in files, whole or in parts: docs/formats/memory-image.md.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/byte_sink.h"
#include "formats/io/hash.h"
#include "formats/io/input.h"

namespace citcat {

/// The forms such a file can have.
enum class MemoryFileForm : std::uint8_t {
  raw,     ///< the bytes from physical address 0 on
  pages,   ///< records of a 32-bit address and the 4096 bytes there, in ascending order
  ranges,  ///< ours: a header, ranges of any length, an end with a hash
};
/// "raw", "pages", "ranges".
std::string_view memory_file_form_name(MemoryFileForm form);

/// The form of an image that begins with `prefix` (up to a mebibyte of it).
MemoryFileForm memory_file_form_of(std::span<const std::uint8_t> prefix);

/// Reads a memory image from beginning to end, part by part.
class MemoryFileReader {
 public:
  /// Decides the form by content. A file is taken as raw when it is neither of the others.
  /// Compressed files are read as they are. Throws IoError when it cannot be opened.
  explicit MemoryFileReader(const std::string& path)
      : MemoryFileReader(std::make_unique<InputStream>(path)) {}
  explicit MemoryFileReader(std::unique_ptr<InputStream> input);

  struct Part {
    std::uint64_t address = 0;
    std::span<const std::uint8_t> bytes;  ///< valid until the next call
  };
  /// The next part. False at the clean end. Throws FormatError for a file that ends early, parts
  /// that overlap, are out of order or reach beyond the addresses of 52 bits, and a hash that
  /// differs.
  bool next(Part& out);

  MemoryFileForm form() const { return form_; }

 private:
  bool next_raw(Part& out);
  bool next_page(Part& out);
  bool next_range(Part& out);
  void read_header();
  void check_end();
  void take_exact(std::span<std::uint8_t> out, std::string_view field);
  void check_place(std::uint64_t address, std::uint64_t size);

  std::unique_ptr<InputStream> input_;
  MemoryFileForm form_;
  Hasher128 hasher_;
  std::uint64_t next_address_ = 0;  ///< lowest the next part may have
  std::uint32_t range_left_ = 0;    ///< bytes of the current range not yet handed out
  bool wide_ = false;               ///< addresses of ranges have 64 bits
  bool ended_ = false;
  std::vector<std::uint8_t> buffer_;
};

/// Writes the form `ranges`.
class MemoryFileWriter {
 public:
  /// `wide`: parts may lie beyond 4 GiB.
  explicit MemoryFileWriter(std::unique_ptr<ByteSink> sink, bool wide = false);
  /// Parts come in ascending order and do not overlap. Neighbours need not be joined.
  void write(std::uint64_t address, std::span<const std::uint8_t> bytes);
  /// Writes the end; without it a reader refuses the file.
  void finish();

 private:
  void put_range(std::uint64_t address, std::size_t size);
  void put(std::span<const std::uint8_t> bytes);

  std::unique_ptr<ByteSink> sink_;
  bool wide_;
  Hasher128 hasher_;
  std::uint64_t next_address_ = 0;
};

}  // namespace citcat
