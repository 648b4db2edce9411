#include "formats/io/byte_sink.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "formats/io/error.h"
#include "formats/io/zstd_sink.h"

namespace citcat {

namespace {

/// Fast enough that a writer at several hundred MB/s is not held up by one worker.
constexpr int kStreamLevel = 1;

}  // namespace

void StdoutSink::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (done < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) throw ReaderGone("(standard output): its reader has gone");
      throw IoError(std::string("(standard output): cannot write: ") + std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

std::unique_ptr<ByteSink> open_plain_sink(const std::string& path) {
  if (is_standard_output(path)) return std::make_unique<StdoutSink>();
  return std::make_unique<FileSink>(path);
}

std::unique_ptr<ByteSink> open_sink(const std::string& path) {
  if (path.empty()) return std::make_unique<NullSink>();
  auto file = open_plain_sink(path);
  if (!path.ends_with(".zst")) return file;
  const int workers = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  return std::make_unique<ZstdSink>(std::move(file), kStreamLevel, workers);
}

}  // namespace citcat
