#include "capture/import/record_csv.h"
#include "fuzz/drain_capture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  citcat::fuzz::drain_records(data, size, citcat::make_csv_record_file);
  return 0;
}
