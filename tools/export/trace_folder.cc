// A folder with files that are written side by side.

#include "tools/export/trace_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/io/atomic_file.h"
#include "formats/io/error.h"

namespace citcat::tools {
namespace {

[[noreturn]] void fail_with_reason(const std::string& path, const char* what) {
  throw IoError(path + ": " + what + ": " + std::strerror(errno));
}

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return;
  if (errno == EEXIST) {
    throw IoError(path + ": expected a new name for a folder, found something of that name");
  }
  fail_with_reason(path, "cannot be made");
}

void write_all(int descriptor, std::span<const std::uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with_reason(path, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

TraceFolder::TraceFolder(std::string path, const std::string& inner)
    : path_(std::move(path)),
      unfinished_(path_ + std::string(kPartialSuffix)),
      inner_(unfinished_ + "/" + inner) {
  if (std::filesystem::exists(std::filesystem::symlink_status(path_))) {
    throw IoError(path_ + ": expected a new name for a folder, found something of that name");
  }
  make_folder(unfinished_);
  make_folder(inner_);
}

std::size_t TraceFolder::add(const std::string& name) {
  files_.push_back(inner_ + "/" + name);
  return files_.size() - 1;
}

void TraceFolder::write(std::size_t file, std::span<const std::uint8_t> bytes) const {
  const std::string& path = files_[file];
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_with_reason(path, "cannot be opened");
  try {
    write_all(descriptor, bytes, path);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  if (::close(descriptor) != 0) fail_with_reason(path, "cannot be closed");
}

void TraceFolder::finish() const {
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) {
    fail_with_reason(path_, "cannot be given its name");
  }
}

}  // namespace citcat::tools
