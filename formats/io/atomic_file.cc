#include "formats/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

namespace {

// A signal handler may neither allocate nor lock, so the names it must remove lie in fixed places.
// A slot is free (0), being filled (1) or holds a name (2).
struct TemporarySlot {
  std::atomic<int> state{0};
  std::array<char, PATH_MAX> name{};
};
std::array<TemporarySlot, 16> temporaries;

int remember_temporary(const std::string& name) {
  if (name.size() >= PATH_MAX) return -1;
  for (std::size_t i = 0; i < temporaries.size(); ++i) {
    int free = 0;
    if (!temporaries[i].state.compare_exchange_strong(free, 1)) continue;
    std::memcpy(temporaries[i].name.data(), name.c_str(), name.size() + 1);
    temporaries[i].state = 2;
    return static_cast<int>(i);
  }
  return -1;
}

void forget_temporary(int slot) {
  if (slot >= 0) temporaries[static_cast<std::size_t>(slot)].state = 0;
}

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw IoError(path + ": cannot " + what + ": " + std::strerror(errno));
}

/// The file that a rename must replace: the end of a chain of symbolic links.
std::string follow_links(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path, Unfinished unfinished)
    : path_(path), target_(follow_links(path)), unfinished_(unfinished) {
  struct stat status {};
  if (::stat(target_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(path_, "open for writing");
    return;
  }
  open_temporary();
}

void AtomicFile::open_temporary() {
  if (unfinished_ == Unfinished::keep) {
    temporary_ = target_ + ".partial";
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail(temporary_, "create");
    return;
  }
  temporary_ = target_ + ".XXXXXX";
  descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    temporary_.clear();
    fail(path_, "create a temporary file beside it");
  }
  slot_ = remember_temporary(temporary_);
  // mkostemp makes files that only their owner can read; the result is an ordinary file.
  ::fchmod(descriptor_, default_mode());
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  const bool worthless = unfinished_ == Unfinished::remove || size_ == 0;
  if (!temporary_.empty() && worthless) ::unlink(temporary_.c_str());
  forget_temporary(slot_);
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
  if (!temporary_.empty() && ::fsync(descriptor_) != 0) fail(path_, "flush to the device");
  const int status = ::close(std::exchange(descriptor_, -1));
  if (status != 0) fail(path_, "close");
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(path_, "rename into place");
  temporary_.clear();
  forget_temporary(std::exchange(slot_, -1));
  sync_folder();
}

void AtomicFile::sync_folder() const {
  // Without this the new name may be lost in a power failure although the data is safe. Some file
  // systems refuse it, which is no reason to fail: the file itself is complete.
  std::string folder = std::filesystem::path(target_).parent_path().string();
  if (folder.empty()) folder = ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void remove_unfinished_files() noexcept {
  for (TemporarySlot& slot : temporaries) {
    if (slot.state == 2) ::unlink(slot.name.data());
  }
}

}  // namespace citcat
