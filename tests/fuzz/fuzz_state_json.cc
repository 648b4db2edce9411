// load_state_json() on any bytes.

#include <cstdint>

#include "events/machine/cpu_state.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(state_json) {
  const citcat::fuzz::FileInMemory file({data, size});
  try {
    citcat::load_state_json(file.path());
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
