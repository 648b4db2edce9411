// load_state_json() on any bytes.

#include <cstdint>

#include "events/cpu_state.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const citcat::fuzz::FileInMemory file({data, size});
  try {
    citcat::load_state_json(file.path());
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
