#include "capture/import/record_csv.h"
#include "fuzz/drain_capture.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(record_csv) {
  citcat::fuzz::drain_records(data, size, citcat::make_csv_record_file);
  return 0;
}
