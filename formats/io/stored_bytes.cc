#include "formats/io/stored_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

StoredBytes::StoredBytes(const std::string& path, std::string name)
    : name_(std::move(name)), owned_(true), buffer_(kBufferBytes) {
  descriptor_ = ::open(system_path(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw IoError(name_ + ": cannot open: " + std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor_);
    throw IoError(name_ + ": expected a file, found a directory");
  }
  watch_.emplace(descriptor_, name_);
}

StoredBytes::StoredBytes(std::shared_ptr<OnceInput> once, std::string name)
    : name_(std::move(name)),
      descriptor_(once->descriptor()),
      once_(std::move(once)),
      buffer_(kBufferBytes) {
  watch_.emplace(descriptor_, name_);
}

StoredBytes::StoredBytes(std::span<const std::uint8_t> memory, std::string name)
    : name_(std::move(name)), memory_(memory) {}

StoredBytes::~StoredBytes() {
  if (owned_) ::close(descriptor_);
}

std::span<const std::uint8_t> StoredBytes::head() {
  if (end_ == 0 && descriptor_ < 0) advance(0, memory_.size());
  if (end_ == 0 && descriptor_ >= 0) {
    // A pipe may deliver its first bytes one by one; the magic number is wanted whole.
    std::size_t got = 0;
    while (got < kHeadBytes) {
      const std::size_t piece = read_descriptor(std::span(buffer_).subspan(got), got);
      if (piece == 0) break;
      got += piece;
    }
    advance(0, got);
  }
  return window().subspan(begin_, end_ - begin_);
}

void StoredBytes::seek(std::uint64_t offset) {
  if (::lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) {
    throw IoError(name_ + ": cannot seek: " + std::strerror(errno));
  }
  begin_ = end_;
  start_ = offset - total_;
}

std::size_t StoredBytes::take(std::span<std::uint8_t> out) {
  std::size_t got = 0;
  if (begin_ != end_) {
    const auto in = window().subspan(begin_, end_ - begin_);
    got = std::min(in.size(), out.size());
    std::copy_n(in.begin(), got, out.begin());
    begin_ += got;
  } else if (descriptor_ >= 0) {
    got = read_descriptor(out, 0);
    total_ += got;
    hasher_.update(out.first(got));
    if (got == 0) watch_->check_unchanged();
  }
  return got;
}

bool StoredBytes::lies_still() {
  if (once_) return false;
  if (descriptor_ >= 0) file_ = MappedFile::open(descriptor_, name_);
  return descriptor_ < 0 || file_ != nullptr;
}

std::span<const std::uint8_t> StoredBytes::extend(std::span<const std::uint8_t> unread) {
  if (!file_) return std::exchange(begin_, end_) != end_ ? memory_ : unread;
  if (std::exchange(begin_, end_) != end_) {
    return file_->at(0, static_cast<std::size_t>(total_)).first(static_cast<std::size_t>(total_));
  }
  return extend_mapped(unread);
}

std::span<const std::uint8_t> StoredBytes::window() const {
  return descriptor_ < 0 ? memory_ : std::span<const std::uint8_t>(buffer_);
}

/// `ahead`: bytes that were read and are not yet counted.
std::size_t StoredBytes::read_descriptor(std::span<std::uint8_t> out, std::size_t ahead) {
  if (once_) return once_->read(total_ + ahead, out);
  for (;;) {
    const ssize_t got = ::read(descriptor_, out.data(), out.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw IoError(name_ + ": cannot read: " + std::strerror(errno));
  }
}

std::span<const std::uint8_t> StoredBytes::extend_mapped(std::span<const std::uint8_t> unread) {
  if (total_ == file_->size()) {
    file_->check_unchanged();
    return unread;
  }
  const auto all = file_->at(total_ - unread.size(), unread.size() + 1);
  const auto known = all.first(std::min(all.size(), unread.size() + kBufferBytes));
  const auto more = known.subspan(unread.size());
  total_ += more.size();
  hasher_.update(more);
  file_->check_read();
  return known;
}

void StoredBytes::advance(std::size_t begin, std::size_t end) {
  begin_ = begin;
  end_ = end;
  total_ += end - begin;
  hasher_.update(window().subspan(begin, end - begin));
}

}  // namespace citcat
