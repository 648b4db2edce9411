#include "capture/import/native.h"
#include "fuzz/drain_capture.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(native) {
  citcat::fuzz::drain_records(data, size, citcat::make_native_record_file);
  return 0;
}
