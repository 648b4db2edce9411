#include "formats/zstd_stream.h"

#include <zstd.h>

#include <memory>
#include <new>

#include "formats/error.h"

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

std::vector<std::uint8_t> zstd_compress(std::span<const std::uint8_t> plain,
                                        const ZstdOptions& options) {
  CITCAT_ASSERT(options.window_log <= kMaxZstdWindow);
  const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  ZSTD_CCtx* const cctx = context.get();
  check(ZSTD_CCtx_setParameter(cctx, ZSTD_c_compressionLevel, options.level), "set the level");
  if (options.window_log != 0) {
    check(ZSTD_CCtx_setParameter(cctx, ZSTD_c_windowLog, options.window_log), "set the window");
    check(ZSTD_CCtx_setParameter(cctx, ZSTD_c_enableLongDistanceMatching, 1), "match afar");
  }
  std::vector<std::uint8_t> frame(ZSTD_compressBound(plain.size()));
  const std::size_t size =
      ZSTD_compress2(cctx, frame.data(), frame.size(), plain.data(), plain.size());
  check(size, "compress");
  frame.resize(size);
  frame.shrink_to_fit();
  return frame;
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
