#include "cli/record/output_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "cli/record/recorded_emulator.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::string_view kContent = "citcat record\n";

/// Whether the file is empty, as one is that was made this moment, or says that it is ours.
bool is_ours(int file) {
  std::array<char, kContent.size() + 1> text{};
  const ssize_t size = pread(file, text.data(), text.size(), 0);
  return size >= 0 &&
         (size == 0 || std::string_view(text.data(), static_cast<std::size_t>(size)) == kContent);
}

/// Whether the file still has the name.
bool has_name(int file, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return fstat(file, &open) == 0 && lstat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

OutputLock::OutputLock(const std::string& output) : path_(output + ".lock") {
  while (!take(output)) {
  }
}

/// False where the file was removed meanwhile, by the recording that had it.
bool OutputLock::take(const std::string& output) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  lock_ = FileDescriptor(open(path_.c_str(), kFlags | O_CREAT | O_EXCL, 0666));
  if (lock_.value() < 0 && errno == EEXIST) {
    lock_ = FileDescriptor(open(path_.c_str(), kFlags));
    if (lock_.value() < 0 && errno == ENOENT) return false;
  }
  struct stat status {};
  const bool foreign = lock_.value() < 0
                           ? errno == ELOOP
                           : fstat(lock_.value(), &status) == 0 &&
                                 (!S_ISREG(status.st_mode) || !is_ours(lock_.value()));
  if (foreign)
    throw IoError(path_ +
                  ": expected a lock file of citcat, found the file of another program; choose "
                  "another name for the recording");
  if (lock_.value() < 0) throw IoError(system_message(path_));
  if (flock(lock_.value(), LOCK_EX | LOCK_NB) != 0)
    throw IoError(output + ": another recording is writing this file");
  if (!has_name(lock_.value(), path_)) return false;
  if (pwrite(lock_.value(), kContent.data(), kContent.size(), 0) !=
      static_cast<ssize_t>(kContent.size()))
    throw IoError(system_message(path_));
  goes_too_.emplace(path_);
  return true;
}

OutputLock::~OutputLock() {
  if (has_name(lock_.value(), path_)) unlink(path_.c_str());
}

}  // namespace citcat
