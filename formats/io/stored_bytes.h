#pragma once
// The bytes of an input as they are stored: what decompression reads from.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/io/file_watch.h"
#include "formats/io/hash.h"
#include "formats/io/mapped_file.h"
#include "formats/io/once_input.h"

namespace citcat {

/// A file, an input that can be read but once, or memory, from beginning to end; counts and hashes
/// what was read. Memory: a buffer of kBufferBytes. Errors of the operating system, and a file that
/// others changed meanwhile, throw IoError.
class StoredBytes {
 public:
  /// Opens the file `path`; messages call it `name`. A folder throws IoError.
  StoredBytes(const std::string& path, std::string name);
  StoredBytes(std::shared_ptr<OnceInput> once, std::string name);
  /// Memory that the caller keeps alive.
  StoredBytes(std::span<const std::uint8_t> memory, std::string name);
  ~StoredBytes();
  StoredBytes(const StoredBytes&) = delete;
  StoredBytes& operator=(const StoredBytes&) = delete;

  /// The first bytes, without consuming them: at least `kHeadBytes`, unless there are no more.
  std::span<const std::uint8_t> head();
  /// Goes on at an offset of the file; before anything was consumed.
  void seek(std::uint64_t offset);
  /// Moves bytes to `out`, those of a file without a buffer between. 0 at the end.
  std::size_t take(std::span<std::uint8_t> out);

  /// What is not compressed can be handed out where it lies: memory, or a file that can be mapped.
  bool lies_still();
  /// Returns `unread`, which was returned last, and more bytes after it; no more at the end.
  /// Nothing at first returns all that was looked at to find the compression.
  std::span<const std::uint8_t> extend(std::span<const std::uint8_t> unread);

  const std::string& name() const { return name_; }
  /// Bytes that were read, those of head() included.
  std::uint64_t total() const { return total_; }
  /// Where in the file the next byte lies that take() will return.
  std::uint64_t position() const { return start_ + total_ - (end_ - begin_); }
  /// XXH3-128 of the bytes that were read.
  Hash128 hash() const { return hasher_.value(); }

  static constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
  /// Enough to tell a compression.
  static constexpr std::size_t kHeadBytes = 16;

 private:
  std::span<const std::uint8_t> window() const;
  std::span<const std::uint8_t> extend_mapped(std::span<const std::uint8_t> unread);
  std::size_t read_descriptor(std::span<std::uint8_t> out, std::size_t ahead);
  void advance(std::size_t begin, std::size_t end);

  std::string name_;
  int descriptor_ = -1;
  bool owned_ = false;
  std::shared_ptr<OnceInput> once_;  ///< null unless the descriptor is such an input's
  std::optional<FileWatch> watch_;   ///< of a descriptor
  std::vector<std::uint8_t> buffer_;
  std::span<const std::uint8_t> memory_;
  std::unique_ptr<MappedFile> file_;
  std::size_t begin_ = 0, end_ = 0;  ///< of the unconsumed bytes in the window
  std::uint64_t start_ = 0;          ///< what seek() left out
  std::uint64_t total_ = 0;
  Hasher128 hasher_;
};

}  // namespace citcat
