#pragma once
// Outputs that commands write, read again and add to before they are complete.

#include <optional>
#include <string>

#include "formats/io/atomic_file.h"

namespace citcat {

/// Throws UsageError when JSON and an output of its own are to go to the standard output both.
void require_own_output(const std::string& path, bool json);

/// An output that is made in a folder of its own, beside where it is to go, and gets its name by
/// finish(): what is there before stays as it is until everything has succeeded. For the standard
/// output, a pipe or a device the folder is in the system's for temporary files, and the output is
/// copied from it.
class StagedOutput {
 public:
  /// `path` is where the output is to go. Throws UsageError for the standard output when that is a
  /// terminal: no output of this kind is text.
  explicit StagedOutput(const std::string& path);
  /// The file to write.
  const std::string& path() const { return staged_; }
  /// A file for what is needed on the way only, which goes when this object does.
  std::string beside(const std::string& name) const { return folder_->path() + "/" + name; }
  /// The output is complete: it goes where it is to go.
  void finish();

 private:
  std::string path_;
  OutputKind kind_;
  std::optional<Temporary> folder_;
  std::string staged_;
};

}  // namespace citcat
