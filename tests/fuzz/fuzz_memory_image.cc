#include "formats/captures/sparse_image.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(memory_image) {
  try {
    citcat::MemoryFileReader reader(citcat::fuzz::stream(data, size));
    citcat::MemoryFileReader::Part part;
    std::uint64_t next = 0;
    while (reader.next(part)) {
      CITCAT_ASSERT(part.address >= next && !part.bytes.empty());
      next = std::uint64_t{part.address} + part.bytes.size();
    }
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
