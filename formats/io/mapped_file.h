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

/// A regular file that nobody should change while it is read; check() notices when somebody did.
/// Memory: a window of kPieceBytes of the system's page cache is mapped at a time.
class MappedFile {
 public:
  /// From now on open() maps files. Not before: a page that cannot be read is told by a signal, whose
  /// handler (PageGuard) is the whole process's, and that is its owner's to decide, not a library's.
  static void allow();
  /// Of an open descriptor, which the caller keeps; `name` is for messages. Null when it is not a
  /// regular file, is smaller than kLeastBytes, or cannot be mapped.
  static std::unique_ptr<MappedFile> open(int descriptor, const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// When it was opened.
  std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
  /// At least `least` bytes (at most kMaxAtOnce) from `offset`; fewer only at the end of the file.
  /// Valid until the next call. Bytes that could not be read are zero. IoError when mapping fails.
  std::span<const std::uint8_t> at(std::uint64_t offset, std::size_t least);

  /// Throws IoError when what at() returned last could not be read.
  void check_read() const;
  /// Throws IoError when the file's size or modification time is not what it was when the file was
  /// opened.
  void check_unchanged() const;

  static constexpr std::size_t kMaxAtOnce = std::size_t{1} << 21;
  /// Below this, copying costs less than mapping.
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
