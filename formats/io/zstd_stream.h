#pragma once
// Single zstd frames of known size: the payload of a chunk.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace citcat {

struct ZstdOptions {
  int level = 3;  ///< as zstd -1 ... -22
  /// Finds repetitions up to 2^window_log bytes back, with long-distance matching; 0 leaves it to
  /// the level. At most kMaxZstdWindow.
  int window_log = 0;
};
inline constexpr int kMaxZstdWindow = 27;

/// Makes single frames that carry their content size, one after the other with the same memory.
/// Deterministic for equal input and library version.
class ZstdCompressor {
 public:
  ZstdCompressor();
  ~ZstdCompressor();
  ZstdCompressor(const ZstdCompressor&) = delete;
  ZstdCompressor& operator=(const ZstdCompressor&) = delete;

  std::vector<std::uint8_t> compress(std::span<const std::uint8_t> plain,
                                     const ZstdOptions& options);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  std::vector<std::uint8_t> frame_;  ///< room for the largest so far
};

/// One such frame.
std::vector<std::uint8_t> zstd_compress(std::span<const std::uint8_t> plain,
                                        const ZstdOptions& options);

/// The content of exactly one frame, which must have exactly `plain_bytes`. The caller has bounded
/// that number. Damage throws FormatError with `name` and `offset`, the place of the frame.
std::vector<std::uint8_t> zstd_decompress(std::span<const std::uint8_t> frame,
                                          std::uint64_t plain_bytes, const std::string& name,
                                          std::uint64_t offset);

}  // namespace citcat
