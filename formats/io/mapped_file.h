#pragma once
// A file read in place: the pages in which the system keeps it are the buffer.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/io/file_watch.h"
#include "formats/io/page_guard.h"

namespace citcat {

/// A regular file that nobody should change while it is read; check_unchanged() notices when
/// somebody did. Memory: a window of 8 MiB of the system's page cache is mapped at a time, each of
/// them a boost::iostreams::mapped_file_source. What that library leaves to its users is added
/// here: a file that others cut short ends the program no longer (formats/io/page_guard.h), and is
/// an error.
class MappedFile {
 public:
  /// From now on open() maps files. Not before: a page that cannot be read raises a signal, whose
  /// handler (PageGuard) is the whole process's, and that is its owner's to decide, not a
  /// library's.
  static void allow();
  /// Takes an open descriptor, which the caller keeps; `name` is for messages. Null when it is not
  /// a regular file, is smaller than kLeastBytes, or cannot be mapped.
  static std::unique_ptr<MappedFile> open(int descriptor, const std::string& name);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// When it was opened.
  std::uint64_t size() const { return watch_.size(); }
  /// At least `least` bytes (at most kMaxAtOnce) from `offset`; fewer only at the end of the file.
  /// Valid until the next call. Bytes that could not be read are zero. IoError when mapping fails.
  std::span<const std::uint8_t> at(std::uint64_t offset, std::size_t least);

  /// Throws IoError when what at() returned last could not be read.
  void check_read() const;
  /// Throws IoError when the file's size or modification time is not what it was when the file was
  /// opened.
  void check_unchanged() const { watch_.check_unchanged(); }

  static constexpr std::size_t kMaxAtOnce = std::size_t{1} << 21;
  /// Below this, copying costs less than mapping.
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;

 private:
  struct Window;

  MappedFile(int descriptor, const std::string& name, const FileWatch& watch);
  void map(std::uint64_t begin);
  void unmap();

  int descriptor_;
  std::string name_;
  FileWatch watch_;
  std::unique_ptr<Window> window_;
  std::uint64_t begin_ = 0;              ///< of the piece, in the file
  std::span<const std::uint8_t> piece_;  ///< of the window; ends with the file
  std::optional<PageGuard> guard_;
};

}  // namespace citcat
