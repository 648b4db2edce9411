// Chunks of stored records. In a file they are under zstd's checksum, so the fuzzer works on what
// is in it; everything but a FormatError is a fault.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "formats/records/record_unpacker.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(stored_records) {
  constexpr std::size_t kMaxDecoded = std::size_t{1} << 24;
  // The first byte says whether the file is one that an interrupted writer left.
  const bool cut = size != 0 && data[0] != 0;
  std::span<const std::uint8_t> left(data, size);
  if (!left.empty()) left = left.subspan(1);
  const auto pull = [&left](std::span<std::uint8_t> out) {
    const std::size_t n = std::min(out.size(), left.size());
    std::copy_n(left.begin(), n, out.begin());
    left = left.subspan(n);
    return n;
  };
  try {
    citcat::RecordChunkStream stream(
        [](const std::string& what) { throw citcat::FormatError("input", 0, what); });
    if (cut) stream.allow_cut();
    std::vector<std::uint8_t> out(4096);
    std::size_t decoded = 0, got = 0;
    while (decoded < kMaxDecoded && (got = stream.read(pull, out)) != 0) decoded += got;
    if (decoded < kMaxDecoded && decoded % citcat::RecordUnpacker::kRecordBytes != 0) std::abort();
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
