#include "formats/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

namespace {

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw IoError(path + ": cannot " + what + ": " + std::strerror(errno));
}

/// What is to replace a file must not be open to more people than it was.
void take_permissions(int descriptor, const std::string& target) {
  struct stat status {};
  constexpr mode_t kPermissions = 0777;
  if (::stat(target.c_str(), &status) == 0) ::fchmod(descriptor, status.st_mode & kPermissions);
}

/// Without this a new name may be lost in a power failure although the data is safe. Some file
/// systems cannot do it, which is no reason to fail: the file itself is complete.
void sync_folder(const std::string& target, const std::string& path) {
  std::string folder = std::filesystem::path(target).parent_path().string();
  if (folder.empty()) folder = ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  const bool lost =
      ::fsync(descriptor) != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT);
  const int reason = errno;
  ::close(descriptor);
  errno = reason;
  if (lost) fail(path, "make sure of its name on the device");
}

}  // namespace

std::string followed_output(const std::string& path) {
  // Not by the system's realpath(): what the last link names need not exist yet.
  constexpr int kMostLinks = 40;  // as the kernel has it: path_resolution(7)
  std::filesystem::path at(path);
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    if (!std::filesystem::is_symlink(at, error)) return at.string();
    const std::filesystem::path target = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  throw IoError(path + ": cannot follow the symbolic link");
}

bool is_standard_output(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

OutputKind output_kind(const std::string& path) {
  if (is_standard_output(path)) return OutputKind::standard;
  struct stat status {};
  if (::stat(followed_output(path).c_str(), &status) != 0 || S_ISREG(status.st_mode)) {
    return OutputKind::replaced;
  }
  if (S_ISDIR(status.st_mode)) throw IoError(path + ": expected a file to write, found a folder");
  return OutputKind::special;
}

AtomicFile::AtomicFile(const std::string& path, Unfinished unfinished)
    : path_(path), unfinished_(unfinished) {
  switch (output_kind(path)) {
    case OutputKind::standard:
      descriptor_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
      break;
    case OutputKind::special:
      descriptor_ = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
      break;
    case OutputKind::replaced:
      target_ = followed_output(path);
      temporary_ = std::make_unique<Temporary>(
          target_, Temporary::Kind::file,
          unfinished == Unfinished::keep ? target_ + ".partial" : std::string());
      descriptor_ = temporary_->descriptor();
      break;
  }
  if (descriptor_ < 0) fail(path_, "open for writing");
}

AtomicFile::~AtomicFile() {
  if (!temporary_) {
    if (descriptor_ >= 0) ::close(descriptor_);
    return;
  }
  if (descriptor_ >= 0 && unfinished_ == Unfinished::keep && size_ != 0) {
    temporary_->rename_to(target_ + ".partial");
  }
}

void AtomicFile::write(std::span<const std::uint8_t> bytes) {
  CITCAT_ASSERT(descriptor_ >= 0);
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0) {
      if (errno == EINTR) continue;
      fail(path_, "write");
    }
    size_ += static_cast<std::uint64_t>(done);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void AtomicFile::commit() {
  CITCAT_ASSERT(descriptor_ >= 0);
  if (!temporary_) {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail(path_, "close");
    return;
  }
  take_permissions(descriptor_, target_);
  if (::fsync(descriptor_) != 0) fail(path_, "flush to the device");
  if (!temporary_->rename_to(target_)) fail(path_, "rename into place");
  descriptor_ = -1;
  // What an interrupted run, or a first attempt of this one, left of it.
  if (unfinished_ == Unfinished::keep) ::unlink((target_ + ".partial").c_str());
  sync_folder(target_, path_);
}

void put_into_place(const std::string& file, const std::string& target) {
  const std::string end = followed_output(target);
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(file, "open");
  take_permissions(descriptor, end);
  ::close(descriptor);
  if (std::rename(file.c_str(), end.c_str()) != 0) fail(target, "rename into place");
  sync_folder(end, target);
}

}  // namespace citcat
