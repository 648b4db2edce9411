#include <cstdint>

#include "capture/import/moo_capture.h"
#include "formats/captures/moo.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(moo) {
  try {
    const citcat::MooFile file = citcat::parse_moo({data, size}, "fuzz");
    for (const citcat::MooTest& test : file.tests) {
      citcat::initial_state_of(test, file.cpu);
      citcat::transactions_of(test, file.cpu);
    }
  } catch (const citcat::FormatError&) {
  }
  return 0;
}
