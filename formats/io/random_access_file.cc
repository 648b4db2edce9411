#include "formats/io/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {

RandomAccessFile::RandomAccessFile(const std::string& path) : path_(path) {
  make_rereadable(path);
  descriptor_ = ::open(system_path(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw IoError(path + ": cannot open: " + std::strerror(errno));
  struct stat status {};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(descriptor_);
    throw IoError(path + (S_ISDIR(status.st_mode)
                              ? ": expected a file, found a folder"
                              : ": expected a regular file, because it is read at any offset"));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

RandomAccessFile::~RandomAccessFile() { ::close(descriptor_); }

std::vector<std::uint8_t> RandomAccessFile::read(std::uint64_t offset, std::uint64_t n,
                                                 std::string_view field) const {
  if (offset > size_ || n > size_ - offset) {
    throw FormatError(path_, offset,
                      std::string(field) + ": expected " + std::to_string(n) + " bytes, found " +
                          std::to_string(offset > size_ ? 0 : size_ - offset));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::span<std::uint8_t> rest = std::span(bytes).subspan(done);
    const ssize_t got =
        ::pread(descriptor_, rest.data(), rest.size(), static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError(path_ + ": cannot read: " + std::strerror(errno));
    if (got == 0) {
      throw FormatError(path_, offset + done,
                        std::string(field) + ": the file became shorter while it was read");
    }
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace citcat
