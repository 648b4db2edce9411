#pragma once
// Inputs that can be read only once, such as pipes. The beginning of such an input may be read to
// find out what it is; a later reader still gets all of it.

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
/// socket. Opens nothing. A name that does not exist is no such input.
bool is_once_input(const std::string& path);

/// Whether `path` names the standard input, whatever that is.
bool is_standard_input(const std::string& path);

/// The name by which the operating system can open `path`: "-" means nothing to it.
std::string system_path(const std::string& path);

/// One input, whatever it is called ("-" and "/dev/stdin", say). Bytes are kept only as long as
/// they have been peeked at but not read. Either one reader takes it, or it is spooled to a
/// temporary file and read like any file from then on.
class OnceInput {
 public:
  /// What `path` names, the same object each time; opened the first time. Null if that is not such
  /// an input. Throws IoError when it cannot be opened.
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
