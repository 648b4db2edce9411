#pragma once
// Notices when a file has changed since it was opened.

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace citcat {

/// A file that must not change while it is read, because the result would be a mixture of two
/// files. Anything but a regular file, such as a pipe, never counts as changed.
class FileWatch {
 public:
  /// Takes an open descriptor, which the caller keeps; `name` is for messages. IoError when it
  /// cannot be looked at.
  FileWatch(int descriptor, std::string name);

  bool is_regular() const { return S_ISREG(status_.st_mode); }
  /// Bytes, when it was opened.
  std::uint64_t size() const { return static_cast<std::uint64_t>(status_.st_size); }
  /// Throws IoError when the file's size or modification time is not what it was then.
  void check_unchanged() const;

 private:
  struct stat look() const;

  int descriptor_;
  std::string name_;
  struct stat status_;
};

}  // namespace citcat
