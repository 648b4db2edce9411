#include "cli/record/interrupt_log_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/record/recorded_emulator.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

/// What stays of it. Between two instructions an emulator logs a few events of a kilobyte each.
constexpr off_t kKept = off_t{1} << 20;

}  // namespace

InterruptLogFile::InterruptLogFile() : file_(memfd_create("citcat-log", MFD_CLOEXEC)) {
  if (file_.value() < 0) throw IoError(system_message("memfd_create"));
}

std::string InterruptLogFile::path() const {
  return "/proc/self/fd/" + std::to_string(file_.value());
}

void InterruptLogFile::trim() {
  // The file is longer than what is in it: the monitor has made it so.
  off_t end = trimmed_;
  for (off_t next = end; (next = lseek(file_.value(), next, SEEK_DATA)) >= 0;) {
    next = lseek(file_.value(), next, SEEK_HOLE);
    if (next < 0) return;
    end = next;
  }
  const off_t gone = (end - kKept) & ~(kKept - 1);
  if (gone <= trimmed_) return;
  if (fallocate(file_.value(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, trimmed_,
                gone - trimmed_) == 0)
    trimmed_ = gone;
}

std::uint64_t InterruptLogFile::held() const {
  struct stat status {};
  constexpr std::uint64_t kBlock = 512;  // stat(2)
  return fstat(file_.value(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * kBlock
                                            : 0;
}

}  // namespace citcat
