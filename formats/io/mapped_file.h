#pragma once
// A file read in place: the pages in which the system keeps it are the buffer.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/io/page_guard.h"

namespace citcat {

/// A regular file that others should leave as it is while it is read; where they do not, check()
/// says so. Memory: a piece of kPieceBytes of the system's cache is mapped at a time.
class MappedFile {
 public:
  /// Of an open descriptor, which stays the caller's; `name` is for messages. Null for what is no
  /// regular file, is smaller than kLeastBytes, or cannot be mapped.
  static std::unique_ptr<MappedFile> open(int descriptor, const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// When it was opened.
  std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
  /// From `offset` on: `least` bytes, at most kMaxAtOnce, or more; fewer only where the file ends.
  /// Valid until the next call. What could not be read are zeros. IoError when it cannot be mapped.
  std::span<const std::uint8_t> at(std::uint64_t offset, std::size_t least);

  /// Throws IoError when what at() returned last could not be read.
  void check_read() const;
  /// The same when the file is another than it was when it was opened, by its size and its time of
  /// change.
  void check_unchanged() const;

  static constexpr std::size_t kMaxAtOnce = std::size_t{1} << 21;
  /// What to map costs more than to copy.
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;

 private:
  MappedFile(int descriptor, const std::string& name, const struct stat& status)
      : descriptor_(descriptor), name_(name), status_(status) {}
  bool map(std::uint64_t begin);
  void unmap();

  int descriptor_;
  std::string name_;
  struct stat status_;
  std::uint64_t begin_ = 0;              ///< of the piece, in the file
  std::span<const std::uint8_t> piece_;  ///< ends with the file
  std::optional<PageGuard> guard_;
};

}  // namespace citcat
