#include "view/exported/deflate.h"

#include <libdeflate.h>

#include <memory>

#include "formats/io/error.h"

namespace citcat::view {

namespace {

/// One of libdeflate's levels 1 to 12. Level 12 makes 6 % less, and takes eighteen times as long.
constexpr int kLevel = 7;
constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct FreeCompressor {
  void operator()(libdeflate_compressor* it) const { libdeflate_free_compressor(it); }
};

}  // namespace

std::vector<std::uint8_t> deflated(std::span<const std::uint8_t> plain) {
  const std::unique_ptr<libdeflate_compressor, FreeCompressor> compressor(
      libdeflate_alloc_compressor(kLevel));
  if (!compressor) throw std::bad_alloc();
  std::vector<std::uint8_t> out(libdeflate_zlib_compress_bound(compressor.get(), plain.size()));
  const std::size_t size = libdeflate_zlib_compress(compressor.get(), plain.data(), plain.size(),
                                                    out.data(), out.size());
  CITCAT_ASSERT(size != 0);
  out.resize(size);
  return out;
}

std::string base64(std::span<const std::uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      three = three << 8 | (i + j < bytes.size() ? bytes[i + j] : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kDigits[three >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

}  // namespace citcat::view
