#include "formats/io/byte_sink.h"

#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

#include "formats/io/error.h"

namespace citcat {

namespace {

/// Fast enough that a writer at several hundred MB/s is not held up by one worker.
constexpr int kStreamLevel = 1;

void check_zstd(std::size_t status, const char* what) {
  if (!ZSTD_isError(status)) return;
  throw InternalError(std::string("zstd: cannot ") + what + ": " + ZSTD_getErrorName(status));
}

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

void ZstdSink::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

ZstdSink::ZstdSink(std::unique_ptr<ByteSink> target, int level, int workers)
    : target_(std::move(target)), context_(ZSTD_createCCtx()), buffer_(ZSTD_CStreamOutSize()) {
  if (!context_) throw std::bad_alloc();
  check_zstd(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level), "set level");
  check_zstd(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1), "set checksum");
  // A library built without threads refuses; it then compresses in the caller's thread.
  ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_nbWorkers, workers);
}

ZstdSink::~ZstdSink() = default;

void ZstdSink::write(std::span<const std::uint8_t> bytes) {
  if (!bytes.empty()) compress(bytes, false);
}

void ZstdSink::finish() {
  compress({}, true);
  target_->finish();
}

void ZstdSink::compress(std::span<const std::uint8_t> bytes, bool end) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::size_t left = 0;
  do {
    ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
    left = ZSTD_compressStream2(context_.get(), &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
    check_zstd(left, "compress");
    if (out.pos != 0) target_->write(std::span<const std::uint8_t>(buffer_).first(out.pos));
  } while (end ? left != 0 : in.pos != in.size);
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
