#include "formats/io/once_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "formats/io/error.h"
#include "formats/io/file_identity.h"

namespace citcat {
namespace {

std::string own_descriptor_path(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

/// A file that is read from its beginning can be opened again; one that a shell's command has read
/// part of goes on where that stopped. Devices give anew what they give, terminals do not.
bool is_once_standard_input(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return ::lseek(STDIN_FILENO, 0, SEEK_CUR) != 0;
  if (S_ISCHR(status.st_mode)) return ::isatty(STDIN_FILENO) == 1;
  return !S_ISDIR(status.st_mode) && !S_ISBLK(status.st_mode);
}

bool is_standard_input(const FileIdentity& identity) {
  struct stat status {};
  return ::fstat(STDIN_FILENO, &status) == 0 && identity_of(status) == identity;
}

/// Nothing when `path` does not name such an input.
std::optional<FileIdentity> once_identity(const std::string& path) {
  struct stat status {};
  if (path == "-") {
    if (::fstat(STDIN_FILENO, &status) != 0 || !is_once_standard_input(status)) return std::nullopt;
    // A file is known by its name to others, who read it from its beginning.
    return S_ISREG(status.st_mode) ? FileIdentity{} : identity_of(status);
  }
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  const bool pipe = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
  const bool terminal = S_ISCHR(status.st_mode) && is_standard_input(identity_of(status)) &&
                        ::isatty(STDIN_FILENO) == 1;
  return pipe || terminal ? std::optional(identity_of(status)) : std::nullopt;
}

/// Inputs that were opened. They stay open, so that no other gets their identity.
struct Opened {
  std::mutex mutex;
  std::map<FileIdentity, std::shared_ptr<OnceInput>> inputs;
};
Opened& opened() {
  static Opened instance;
  return instance;
}

int open_or_throw(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw IoError(path + ": cannot open: " + std::strerror(errno));
  return descriptor;
}

/// A file of nobody's but ours, gone when the process ends however it ends.
int make_nameless_file() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) folder = "/tmp";
  std::string name = (folder / "citcat.XXXXXX").string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) {
    throw IoError(folder.string() +
                  ": cannot make a temporary file for an input that can be read only once: " +
                  std::strerror(errno));
  }
  ::unlink(name.c_str());
  return descriptor;
}

void write_all(int descriptor, std::span<const std::uint8_t> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      throw IoError(name + ": cannot be kept in a temporary file: " + std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

}  // namespace

bool is_standard_input(const std::string& path) {
  struct stat status {};
  return path == "-" ||
         (::stat(path.c_str(), &status) == 0 && is_standard_input(identity_of(status)));
}

bool is_once_input(const std::string& path) { return once_identity(path).has_value(); }

std::string system_path(const std::string& path) {
  if (const auto identity = once_identity(path)) {
    const std::scoped_lock lock(opened().mutex);
    const auto found = opened().inputs.find(*identity);
    if (found != opened().inputs.end() && found->second->spooled()) {
      return own_descriptor_path(found->second->spooled_);
    }
  }
  return path == "-" ? own_descriptor_path(STDIN_FILENO) : path;
}

std::shared_ptr<OnceInput> OnceInput::of(const std::string& path) {
  const auto identity = once_identity(path);
  if (!identity) return nullptr;
  const std::scoped_lock lock(opened().mutex);
  std::shared_ptr<OnceInput>& input = opened().inputs[*identity];
  if (input) return input;
  const bool standard = path == "-" || is_standard_input(*identity);
  const std::string name = path == "-" ? "(standard input)" : path;
  input =
      std::make_shared<OnceInput>(standard ? STDIN_FILENO : open_or_throw(path), !standard, name);
  return input;
}

OnceInput::OnceInput(int descriptor, bool owned, std::string name)
    : name_(std::move(name)), descriptor_(descriptor), owned_(owned) {}

OnceInput::~OnceInput() {
  if (owned_) ::close(descriptor_);
  if (spooled_ >= 0) ::close(spooled_);
}

std::size_t OnceInput::read(std::uint64_t offset, std::span<std::uint8_t> out) {
  if (offset < head_.size()) {
    const auto kept =
        std::span<const std::uint8_t>(head_).subspan(static_cast<std::size_t>(offset));
    const std::size_t n = std::min(kept.size(), out.size());
    std::copy_n(kept.begin(), n, out.begin());
    return n;
  }
  for (;;) {
    const ssize_t got = ::read(descriptor_, out.data(), out.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError(name_ + ": cannot read: " + std::strerror(errno));
    const auto n = static_cast<std::size_t>(got);
    if (!taken_) head_.insert(head_.end(), out.begin(), out.begin() + got);
    return n;
  }
}

void OnceInput::take() {
  if (!taken_.exchange(true)) return;
  throw IoError(name_ +
                ": is needed a second time, but can be read only once: put it into a file first");
}

void OnceInput::spool() {
  if (spooled()) return;
  take();
  const int copy = make_nameless_file();
  try {
    std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
    for (std::uint64_t at = 0; const std::size_t n = read(at, buffer); at += n) {
      write_all(copy, std::span<const std::uint8_t>(buffer).first(n), name_);
    }
  } catch (...) {
    ::close(copy);
    throw;
  }
  head_ = {};
  spooled_ = copy;
}

void make_rereadable(const std::string& path) {
  if (const auto input = OnceInput::of(path)) input->spool();
}

}  // namespace citcat
