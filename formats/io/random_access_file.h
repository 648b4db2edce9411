#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citcat {

/// A plain file that is read at any offset, or an input that can be read only once and was spooled
/// (formats/io/once_input.h). Several threads may read at the same time.
class RandomAccessFile {
 public:
  /// Throws IoError when it cannot be opened or is not a regular file.
  explicit RandomAccessFile(const std::string& path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  /// `n` bytes from `offset`; FormatError naming `field` when they reach beyond the end. `n` is
  /// checked against the file before anything is allocated.
  std::vector<std::uint8_t> read(std::uint64_t offset, std::uint64_t n,
                                 std::string_view field) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace citcat
