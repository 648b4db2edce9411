#pragma once
// Writes all outputs, so that a name never shows half of a file.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/io/temporary.h"

namespace citcat {

/// What happens to an output, depending on what has its name.
enum class OutputKind : std::uint8_t {
  standard,  ///< "-", or the system's own names of the standard output: written as it comes
  replaced,  ///< a file, or nothing yet: a new file takes the name when it is complete
  special,   ///< a device, a named pipe, a socket: written as it comes, and never replaced
};
/// Follows symbolic links. Throws IoError for a folder, and for links that lead nowhere.
OutputKind output_kind(const std::string& path);

/// Where a new file takes the place of what `path` names: behind its symbolic links. Throws IoError
/// for links that lead nowhere.
std::string followed_output(const std::string& path);

/// Whether `path` names the standard output: "-", or the system's own names of it.
bool is_standard_output(const std::string& path);

/// A file written under a temporary name in the same folder (formats/io/temporary.h) and renamed
/// when it is complete: the final name shows the old file or the whole new one, also after a crash
/// or power failure. Two that write the same name at once disturb each other in nothing; who is
/// complete last has it. What cannot be replaced is written directly. A symbolic link is followed:
/// its target is replaced. A file that is replaced passes its permissions on.
class AtomicFile {
 public:
  /// What happens to an unfinished file when it is abandoned.
  enum class Unfinished : std::uint8_t {
    remove,  ///< it is deleted
    keep,    ///< it gets the name `path.partial`, unless there is not one byte in it; one of that
             ///< name goes when the whole is there
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
  std::string path_;
  std::string target_;                    ///< final name after following links
  std::unique_ptr<Temporary> temporary_;  ///< null when written directly
  Unfinished unfinished_;
  int descriptor_ = -1;  ///< of what is written
  std::uint64_t size_ = 0;
};

/// The ending of the name of an unfinished file that is kept.
inline constexpr std::string_view kPartialSuffix = ".partial";

/// Gives `file`, which is complete and on its device, the name `target` in place of what has it,
/// whose permissions it takes; symbolic links are followed. Throws IoError.
void put_into_place(const std::string& file, const std::string& target);

}  // namespace citcat
