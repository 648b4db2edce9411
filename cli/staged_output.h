#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/temporary_file.h"

namespace citcat {

/// Whether `path` names the standard output: "-", or the system's own names of it.
bool is_standard_output(const std::string& path);

/// Throws UsageError when JSON and an output of its own are to go to the standard output both.
void require_own_output(const std::string& path, bool json);

/// An output that is written, read again and added to before it is complete, which only a file
/// can be. For the standard output, a pipe or a device it is made in a temporary file and copied
/// there when it is complete.
class StagedOutput {
 public:
  /// When a file of the output gets its name: as soon as its writer is done with it, or by
  /// finish(), because what follows may still fail.
  enum class Named : std::uint8_t { at_once, at_the_end };
  /// `path` is where the output is to go. Throws UsageError for the standard output when that is a
  /// terminal: no output of this kind is text.
  explicit StagedOutput(const std::string& path, Named named = Named::at_once);
  /// The file to write.
  const std::string& path() const { return staged_ ? staged_->path() : path_; }
  /// The output is complete: it goes where it is to go.
  void finish();

 private:
  std::string path_;
  std::optional<TemporaryFile> staged_;  ///< none when `path_` can be written itself
  bool copied_ = false;                  ///< to where no file can be put
};

}  // namespace citcat
