#pragma once
// The emulator's log of interrupts, which only its monitor reads. It is in memory, and what the
// monitor has read is removed, so it does not grow with the run.

#include <cstdint>
#include <string>

#include "formats/io/file_descriptor.h"

namespace citcat {

class InterruptLogFile {
 public:
  /// Throws IoError.
  InterruptLogFile();
  /// The file's descriptor, which the emulator inherits.
  int descriptor() const { return file_.value(); }
  /// Its name in a process that has inherited it.
  std::string path() const;
  /// Takes away all but the last of it. The monitor, which reads it at every instruction and passes
  /// over what was written before its recording, is never that far behind.
  void trim();
  /// Bytes of memory that it takes.
  std::uint64_t held() const;

 private:
  FileDescriptor file_;
  std::int64_t trimmed_ = 0;  ///< bytes from its beginning that are gone
};

}  // namespace citcat
