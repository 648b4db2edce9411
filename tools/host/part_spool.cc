#include "tools/host/part_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "formats/io/error.h"
#include "formats/io/temporary.h"

namespace citcat::tools {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw IoError(temporary_folder() + ": what a part of the run leaves cannot be " + what + ": " +
                std::strerror(errno));
}

}  // namespace

PartSpool::PartSpool()
    : file_(::open(temporary_folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
  if (file_.value() < 0) refuse("kept");
}

std::uint64_t PartSpool::append(std::span<const std::uint8_t> bytes) {
  const std::uint64_t at = size_;
  while (!bytes.empty()) {
    const ssize_t n =
        ::pwrite(file_.value(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse("written");
    size_ += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return at;
}

std::vector<std::uint8_t> PartSpool::read(std::uint64_t offset, std::uint64_t size) const {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pread(file_.value(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) refuse("read");
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace citcat::tools
