#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "capture/source.h"
#include "formats/error.h"

// The first byte chooses the record kind. The reader takes files, so the input becomes one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const std::string kPath = "/dev/shm/citcat_fuzz_byu_" + std::to_string(getpid());
  std::ofstream(kPath, std::ios::binary)
      .write(reinterpret_cast<const char*>(data) + 1, static_cast<std::streamsize>(size - 1));
  citcat::CaptureOptions options;
  options.format = (data[0] & 1) != 0 ? "byu" : "byu-pentium";
  try {
    const auto capture = citcat::open_capture({kPath}, options);
    citcat::BusTransaction transaction;
    while (capture->next(transaction)) CITCAT_ASSERT(transaction.size <= 32);
  } catch (const citcat::FormatError&) {
  }
  unlink(kPath.c_str());
  return 0;
}
