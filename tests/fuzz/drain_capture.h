#pragma once
// What fuzz targets do with a capture of bus records: read it to its end or to its error.

#include "capture/record_capture.h"
#include "fuzz/drain.h"

namespace citcat::fuzz {

inline void drain_records(const std::uint8_t* data, std::size_t size, RecordFileMaker make) {
  try {
    const auto capture = open_record_stream("fuzz", stream(data, size), {}, std::move(make));
    BusTransaction t;
    std::uint64_t index = 0;
    while (capture->next(t)) {
      CITCAT_ASSERT(t.index == index++);
      CITCAT_ASSERT(t.size <= kMaxTransactionBytes);
    }
    CITCAT_ASSERT(capture->info().files.size() == 1);
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
}

}  // namespace citcat::fuzz
