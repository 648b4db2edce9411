#include <cstdint>

#include "capture/bus/source.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

// The first byte chooses the record kind. The reader takes files, so the input becomes one.
CITCAT_FUZZ_TARGET(byu) {
  if (size == 0) return 0;
  const citcat::fuzz::FileInMemory file({data + 1, size - 1});
  citcat::CaptureOptions options;
  options.format = (data[0] & 1) != 0 ? "byu" : "byu-pentium";
  try {
    const auto capture = citcat::open_capture({file.path()}, options);
    citcat::BusTransaction transaction;
    while (capture->next(transaction)) CITCAT_ASSERT(transaction.size <= 32);
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
