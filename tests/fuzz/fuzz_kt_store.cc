// Segments of stored KT. Their frames are under checksums, so the fuzzer works on their content;
// the hash inside is not right then, and everything but a FormatError is a fault.

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/io/error.h"
#include "formats/kt/kt_store.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(kt_store) {
  constexpr std::size_t kMaxDecoded = std::size_t{1} << 22;
  try {
    citcat::KtSegmentDecoder decoder({data, data + size}, "input");
    std::vector<std::uint8_t> out;
    std::size_t decoded = 0;
    do {
      decoder.next(out);
      decoded += out.size();
    } while (!out.empty() && decoded < kMaxDecoded);
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
