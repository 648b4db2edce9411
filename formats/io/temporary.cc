#include "formats/io/temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::string_view kMark = ".citcat-";
constexpr std::size_t kRandomCharacters = 16;
/// How much of the final name a temporary name keeps, so that it fits a directory entry.
constexpr std::size_t kMostOfName = 200;

std::string random_characters() {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  std::array<std::uint8_t, kRandomCharacters> random{};
  std::size_t got = 0;
  while (got < random.size()) {
    const ssize_t n = ::getrandom(&random[got], random.size() - got, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError(std::string("no random numbers: ") + std::strerror(errno));
    got += static_cast<std::size_t>(n);
  }
  std::string text;
  for (const std::uint8_t r : random) text += kAlphabet[r % kAlphabet.size()];
  return text;
}

/// What the names of all temporaries for `target` begin with, in its folder.
struct Stem {
  std::filesystem::path folder;
  std::string name;
};

Stem stem_of(const std::string& target) {
  const std::filesystem::path path(target);
  const std::filesystem::path folder = path.parent_path();
  return {folder.empty() ? std::filesystem::path(".") : folder,
          path.filename().string().substr(0, kMostOfName) + std::string(kMark)};
}

/// The name in the target's folder, as the target is named.
std::string beside(const std::string& target, const Stem& stem, const std::string& name) {
  return target.find('/') == std::string::npos ? name : (stem.folder / name).string();
}

bool is_temporary_name(const std::string& name, const std::string& stem) {
  return name.size() == stem.size() + kRandomCharacters && name.starts_with(stem);
}

// ---- Those of this process ----------------------------------------------------------------------

// A signal handler may neither allocate nor lock, so what it must remove lies in fixed places. A
// slot is free (0), being filled (1) or holds a name (2).
struct Slot {
  std::atomic<int> state{0};
  std::array<char, PATH_MAX> name{}, kept_as{};  ///< kept_as: empty where it is removed
  bool is_folder = false;
};
std::array<Slot, 32> slots;

int remember(const std::string& name, const std::string& kept_as, bool is_folder) {
  if (name.size() >= PATH_MAX || kept_as.size() >= PATH_MAX) return -1;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    int free = 0;
    if (!slots[i].state.compare_exchange_strong(free, 1)) continue;
    std::memcpy(slots[i].name.data(), name.c_str(), name.size() + 1);
    std::memcpy(slots[i].kept_as.data(), kept_as.c_str(), kept_as.size() + 1);
    slots[i].is_folder = is_folder;
    slots[i].state = 2;
    return static_cast<int>(i);
  }
  return -1;
}

void forget(int slot) {
  if (slot >= 0) slots[static_cast<std::size_t>(slot)].state = 0;
}

/// An entry of a directory as getdents64(2) gives it: opendir() allocates, which a signal handler
/// may not.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t bytes;
  std::uint8_t type;
};
constexpr std::size_t kNameInEntry = 8 + 8 + 2 + 1;

/// Removes the files in a folder, not folders in it.
void empty_folder(int folder) noexcept {
  ::lseek(folder, 0, SEEK_SET);
  alignas(std::uint64_t) std::array<char, 4096> buffer{};
  for (;;) {
    const long got = ::syscall(SYS_getdents64, folder, buffer.data(), buffer.size());
    if (got <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const char* const entry = buffer.data() + at;
      std::uint16_t bytes = 0;
      std::memcpy(&bytes, entry + offsetof(DirectoryEntry, bytes), sizeof bytes);
      ::unlinkat(folder, entry + kNameInEntry, 0);
      at += bytes;
    }
  }
}

void remove_folder(const char* path) noexcept {
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  empty_folder(folder);
  ::close(folder);
  ::rmdir(path);
}

bool has_bytes(const char* path) noexcept {
  struct stat status {};
  return ::stat(path, &status) == 0 && status.st_size != 0;
}

// ---- Those that others left ---------------------------------------------------------------------

std::function<void(const std::string&)>& leftover_listener() {
  static std::function<void(const std::string&)> instance;
  return instance;
}

/// Removes `path` if it is ours and nobody is at work on it.
void remove_leftover(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  struct stat status {};
  const bool ours = ::fstat(descriptor, &status) == 0 && status.st_uid == ::geteuid() &&
                    (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
  bool removed = false;
  if (ours && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    if (S_ISDIR(status.st_mode)) {
      empty_folder(descriptor);
      removed = ::rmdir(path.c_str()) == 0;
    } else {
      removed = ::unlink(path.c_str()) == 0;
    }
  }
  ::close(descriptor);
  if (removed && leftover_listener()) leftover_listener()(path);
}

void remove_leftovers(const std::string& target) {
  const Stem stem = stem_of(target);
  std::error_code error;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator at(stem.folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (is_temporary_name(name, stem.name)) found.push_back(beside(target, stem, name));
  }
  for (const std::string& path : found) remove_leftover(path);
}

}  // namespace

Temporary::Temporary(const std::string& target, Kind kind, const std::string& kept_as)
    : kind_(kind) {
  remove_leftovers(target);
  while (!make(target)) {
  }
  slot_ = remember(path_, kept_as, kind == Kind::folder);
}

/// False when somebody who looked for leftovers was between the two steps of making and locking it.
bool Temporary::make(const std::string& target) {
  const Stem stem = stem_of(target);
  path_ = beside(target, stem, stem.name + random_characters());
  constexpr mode_t kEverybody = 0666, kOwner = 0700;
  bool made = false;  // a folder
  if (kind_ == Kind::file) {
    descriptor_ =
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kEverybody);
  } else if ((made = ::mkdir(path_.c_str(), kOwner) == 0)) {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  if (descriptor_ < 0) {
    // The second: a folder that was not open yet, and so not locked, was taken for a leftover.
    if (errno == EEXIST || (kind_ == Kind::folder && errno == ENOENT && made)) return false;
    const std::string reason = std::strerror(errno);
    throw IoError(target + ": cannot create a temporary file beside it: " + reason);
  }
  // Where the file system knows no locks nobody takes it for a leftover either.
  while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
  struct stat locked {
  }, named{};
  const bool there = ::fstat(descriptor_, &locked) == 0 && ::lstat(path_.c_str(), &named) == 0;
  if (there && locked.st_ino == named.st_ino && locked.st_dev == named.st_dev) return true;
  ::close(std::exchange(descriptor_, -1));
  return false;
}

Temporary::~Temporary() {
  if (!path_.empty()) {
    if (kind_ == Kind::folder) {
      remove_folder(path_.c_str());
    } else {
      ::unlink(path_.c_str());
    }
  }
  forget(slot_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Temporary::rename_to(const std::string& name) {
  if (std::rename(path_.c_str(), name.c_str()) != 0) return false;
  path_.clear();
  forget(std::exchange(slot_, -1));
  // Its lock is that of what is unfinished: who adds to the file from now on is not to wait for it.
  ::close(std::exchange(descriptor_, -1));
  return true;
}

RemovedBySignals::RemovedBySignals(const std::string& path) : slot_(remember(path, "", false)) {}

RemovedBySignals::~RemovedBySignals() { forget(slot_); }

std::string temporary_folder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : folder.string();
}

void tell_of_leftovers(std::function<void(const std::string&)> told) {
  leftover_listener() = std::move(told);
}

void leave_unfinished_files() noexcept {
  for (Slot& slot : slots) slot.state = 0;
}

void remove_unfinished_files() noexcept {
  for (Slot& slot : slots) {
    if (slot.state != 2) continue;
    if (slot.is_folder) {
      remove_folder(slot.name.data());
    } else if (slot.kept_as[0] != '\0' && has_bytes(slot.name.data())) {
      ::rename(slot.name.data(), slot.kept_as.data());
    } else {
      ::unlink(slot.name.data());
    }
  }
}

}  // namespace citcat
