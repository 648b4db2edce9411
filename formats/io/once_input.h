#pragma once
// Inputs that can be read but once: a pipe gives no byte twice. Whoever wants to know what such an
// input is looks at its beginning; whoever reads it then still finds all of it.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace citcat {

/// Whether `path` names such an input: the standard input ("-") unless it is a file, a pipe, a
/// socket. Nothing is opened. Names that lead to nothing do not.
bool is_once_input(const std::string& path);

/// The name under which the operating system opens what `path` names: "-" is none to it.
std::string system_path(const std::string& path);

/// The input behind all names that mean it ("-" and "/dev/stdin", say). Bytes are kept while they
/// are only looked at, and no longer. One reader may take it; or it is spooled, and read like a
/// file from then on.
class OnceInput {
 public:
  /// What `path` names, the same object each time; opened the first time. Null when that is no
  /// such input. Throws IoError when it cannot be opened.
  static std::shared_ptr<OnceInput> of(const std::string& path);

  OnceInput(int descriptor, bool owned, std::string name);
  ~OnceInput();
  OnceInput(const OnceInput&) = delete;
  OnceInput& operator=(const OnceInput&) = delete;

  /// Bytes from `offset`, which lies within what was read or at its end; 0 at the end of the input.
  std::size_t read(std::uint64_t offset, std::span<std::uint8_t> out);
  /// What is read from now on need not be kept. Throws IoError for the second who takes it.
  void take();
  /// Copies the whole to a temporary file without a name (in $TMPDIR, else /tmp) and makes
  /// system_path() lead there. Throws IoError when that fails or the input was taken before.
  void spool();
  bool spooled() const { return spooled_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  friend std::string system_path(const std::string& path);

  std::string name_;  ///< for messages
  int descriptor_;
  bool owned_;
  std::atomic<bool> taken_ = false;
  std::atomic<int> spooled_ = -1;   ///< descriptor of the copy
  std::vector<std::uint8_t> head_;  ///< all that was read before it was taken
};

/// Makes sure that `path` can be read as often as wanted: spools it if it is an input like that.
void make_rereadable(const std::string& path);

}  // namespace citcat
