#include "formats/io/zstd_stream.h"

#include <zstd.h>

#include <memory>
#include <new>

#include "formats/io/error.h"

namespace citcat {

namespace {

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

void check(std::size_t status, const char* what) {
  if (!ZSTD_isError(status)) return;
  throw InternalError(std::string("zstd: cannot ") + what + ": " + ZSTD_getErrorName(status));
}

}  // namespace

struct ZstdCompressor::Context {
  std::unique_ptr<ZSTD_CCtx, FreeCompressor> zstd{ZSTD_createCCtx()};
};

ZstdCompressor::ZstdCompressor() : context_(std::make_unique<Context>()) {
  if (!context_->zstd) throw std::bad_alloc();
}

ZstdCompressor::~ZstdCompressor() = default;

std::vector<std::uint8_t> ZstdCompressor::compress(std::span<const std::uint8_t> plain,
                                                   const ZstdOptions& options) {
  CITCAT_ASSERT(options.window_log <= kMaxZstdWindow);
  ZSTD_CCtx* const zstd = context_->zstd.get();
  check(ZSTD_CCtx_reset(zstd, ZSTD_reset_session_and_parameters), "start anew");
  check(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, options.level), "set the level");
  if (options.window_log != 0) {
    check(ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, options.window_log), "set the window");
    check(ZSTD_CCtx_setParameter(zstd, ZSTD_c_enableLongDistanceMatching, 1), "match afar");
  }
  const std::size_t most = ZSTD_compressBound(plain.size());
  if (frame_.size() < most) frame_.resize(most);
  const std::size_t size =
      ZSTD_compress2(zstd, frame_.data(), frame_.size(), plain.data(), plain.size());
  check(size, "compress");
  const auto frame = std::span(frame_).first(size);
  return {frame.begin(), frame.end()};
}

std::vector<std::uint8_t> zstd_compress(std::span<const std::uint8_t> plain,
                                        const ZstdOptions& options) {
  return ZstdCompressor().compress(plain, options);
}

std::vector<std::uint8_t> zstd_decompress(std::span<const std::uint8_t> frame,
                                          std::uint64_t plain_bytes, const std::string& name,
                                          std::uint64_t offset) {
  const unsigned long long declared = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (declared != plain_bytes) {
    throw FormatError(name, offset,
                      "expected a zstd frame of " + std::to_string(plain_bytes) +
                          " plain bytes, found one that declares another size");
  }
  const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  std::vector<std::uint8_t> plain(static_cast<std::size_t>(plain_bytes));
  const std::size_t size =
      ZSTD_decompressDCtx(context.get(), plain.data(), plain.size(), frame.data(), frame.size());
  if (ZSTD_isError(size)) {
    throw FormatError(
        name, offset,
        std::string("expected a whole zstd frame, found: ") + ZSTD_getErrorName(size));
  }
  if (size != plain.size()) {
    throw FormatError(
        name, offset,
        "expected " + std::to_string(plain.size()) + " plain bytes, found " + std::to_string(size));
  }
  return plain;
}

}  // namespace citcat
