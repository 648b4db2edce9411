#pragma once
// Writing a file so that its name never shows half of it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace citcat {

/// A file written under a temporary name in the same folder and renamed when it is complete: the
/// final name shows the old file or the whole new one, also after a crash or power failure.
///
/// A final name that exists and is not a regular file (a device, a named pipe, /dev/stdout) cannot
/// be replaced and is written directly. A symbolic link is followed: its target is replaced.
class AtomicFile {
 public:
  /// What happens to an unfinished file when it is abandoned.
  enum class Unfinished : std::uint8_t {
    remove,  ///< the temporary is deleted
    keep,    ///< it stays under the name `path.partial`, which is the temporary name from the
             ///< start; one without a byte in it is deleted
  };

  /// Throws IoError when the temporary cannot be made.
  explicit AtomicFile(const std::string& path, Unfinished unfinished = Unfinished::remove);
  /// Abandons the file unless commit() returned.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends all of `bytes`. Throws IoError with the name and the reason.
  void write(std::span<const std::uint8_t> bytes);
  /// Bytes written so far.
  std::uint64_t size() const { return size_; }
  /// Flushes to the device and gives the file its final name. Nothing may be written afterwards.
  void commit();

  /// The final name, as given.
  const std::string& path() const { return path_; }

 private:
  void open_temporary();
  void sync_folder() const;

  std::string path_;
  std::string target_;     ///< final name after following links
  std::string temporary_;  ///< empty when written directly
  Unfinished unfinished_;
  int descriptor_ = -1;
  int slot_ = -1;
  std::uint64_t size_ = 0;
};

/// What the name of an unfinished file that is kept ends in.
inline constexpr std::string_view kPartialSuffix = ".partial";

/// Deletes the temporaries of all AtomicFiles now open that do not keep their unfinished files.
/// Async-signal-safe: for the handler of a signal that ends the process.
void remove_unfinished_files() noexcept;

}  // namespace citcat
