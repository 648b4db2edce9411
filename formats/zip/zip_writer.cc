#include "formats/zip/zip_writer.h"

#include <fcntl.h>
#include <minizip/zip.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "formats/io/error.h"
#include "formats/io/file_descriptor.h"

namespace citcat {
namespace {

/// Where minizip writes to.
struct ZipTarget {
  std::string path;
  std::uint64_t at = 0, size = 0;
  int error = 0;  ///< errno of the first write that failed

  std::size_t write(const void* bytes, std::size_t count) {
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    std::size_t done = 0;
    while (file.value() >= 0 && done < count) {
      const ssize_t n = ::pwrite(file.value(), static_cast<const char*>(bytes) + done, count - done,
                                 static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) break;
      done += static_cast<std::size_t>(n);
      at += static_cast<std::uint64_t>(n);
    }
    if (done < count && error == 0) error = errno;
    size = std::max(size, at);
    return done;
  }
};

// The functions by which minizip writes (ioapi.h); each stream is the ZipTarget.

void* open_target(void* opaque, const void*, int) { return opaque; }
unsigned long read_target(void*, void*, void*, unsigned long) { return 0; }
unsigned long write_target(void*, void* stream, const void* bytes, unsigned long count) {
  return static_cast<ZipTarget*>(stream)->write(bytes, count);
}
ZPOS64_T tell_target(void*, void* stream) { return static_cast<ZipTarget*>(stream)->at; }
long seek_target(void*, void* stream, ZPOS64_T offset, int origin) {
  auto& target = *static_cast<ZipTarget*>(stream);
  target.at = offset + (origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                        : origin == ZLIB_FILEFUNC_SEEK_CUR ? target.at
                                                           : target.size);
  return 0;
}
int close_target(void*, void*) { return 0; }
int target_error(void* opaque, void*) { return static_cast<ZipTarget*>(opaque)->error; }

}  // namespace

struct ZipWriter::State {
  ZipTarget target;
  zipFile zip = nullptr;
  bool in_member = false;

  [[noreturn]] void fail() const {
    throw IoError(target.path + ": cannot be written: " +
                  (target.error != 0 ? std::strerror(target.error) : "no ZIP file of this size"));
  }
  void require(int status) const {
    if (status != ZIP_OK || target.error != 0) fail();
  }
};

ZipWriter::ZipWriter(const std::string& path) : state_(std::make_unique<State>()) {
  state_->target.path = path;
  {
    const FileDescriptor made(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (made.value() < 0) {
      state_->target.error = errno;
      state_->fail();
    }
  }
  zlib_filefunc64_def functions{};
  functions.zopen64_file = open_target;
  functions.zread_file = read_target;
  functions.zwrite_file = write_target;
  functions.ztell64_file = tell_target;
  functions.zseek64_file = seek_target;
  functions.zclose_file = close_target;
  functions.zerror_file = target_error;
  functions.opaque = &state_->target;
  state_->zip = zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &functions);
  if (state_->zip == nullptr) state_->fail();
}

ZipWriter::ZipWriter(ZipWriter&&) noexcept = default;

/// Unfinished it frees its memory; what it leaves in the file is no whole ZIP file.
ZipWriter::~ZipWriter() {
  if (state_ == nullptr || state_->zip == nullptr) return;
  if (state_->in_member) zipCloseFileInZip(state_->zip);
  zipClose(state_->zip, nullptr);
}

void ZipWriter::end_member() {
  if (!state_->in_member) return;
  state_->in_member = false;
  state_->require(zipCloseFileInZip(state_->zip));
}

void ZipWriter::begin(const std::string& member) {
  end_member();
  // The date of all is 0: the same run gives the same bytes.
  const zip_fileinfo no_date{};
  state_->require(zipOpenNewFileInZip64(state_->zip, member.c_str(), &no_date, nullptr, 0, nullptr,
                                        0, nullptr, Z_DEFLATED, Z_BEST_SPEED, 0));
  state_->in_member = true;
}

void ZipWriter::write(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), kMost);
    state_->require(zipWriteInFileInZip(state_->zip, bytes.data(), static_cast<unsigned>(size)));
    bytes = bytes.subspan(size);
  }
}

void ZipWriter::finish() {
  end_member();
  state_->require(zipClose(std::exchange(state_->zip, nullptr), nullptr));
}

}  // namespace citcat
