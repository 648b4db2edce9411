// Headerless bus records through the whole importer: state dump, counts, derivation.

#include "capture/import/import.h"
#include "capture/import/machine_records.h"
#include "fuzz/drain_capture.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(bus_records) {
  try {
    const auto capture = citcat::open_record_stream("machine", citcat::fuzz::stream(data, size), {},
                                                    citcat::make_machine_record_file);
    citcat::import_from(*capture, {}, nullptr);
  } catch (const citcat::InternalError&) {
    throw;
  } catch (const citcat::Error&) {
  }
  return 0;
}
