#pragma once
// Keeps a second recording away from the same output, by a file beside it.

#include <optional>
#include <string>

#include "formats/io/file_descriptor.h"
#include "formats/io/temporary.h"

namespace citcat {

class OutputLock {
 public:
  /// Locks `output`.lock, which is made where it is not there. Throws IoError where another
  /// recording has it, or a file of that name is not a lock of citcat's: such a file is not changed
  /// or removed, nor followed if it is a link.
  explicit OutputLock(const std::string& output);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  bool take(const std::string& output);

  std::string path_;
  FileDescriptor lock_;
  std::optional<RemovedBySignals> goes_too_;
};

}  // namespace citcat
