#include "processors/sample_records.h"

#include <cstring>

#include "formats/io/input.h"

namespace citcat::test {

std::vector<MonitorRecord> sample_records() {
  constexpr std::uint64_t kMostBytes = 1 << 24;
  constexpr std::size_t kHeader = 72;
  // Types of records: docs/formats/capture.md.
  constexpr std::uint8_t kNativeInvalidation = 20, kEnd = 255, kInvalidation = 12;
  const auto bytes =
      read_whole_file(CITCAT_SOURCE_DIR "/samples/two-processors/queue.bin.zst", kMostBytes);
  std::vector<MonitorRecord> records((bytes.size() - kHeader) / sizeof(MonitorRecord));
  std::memcpy(records.data(), bytes.data() + kHeader, records.size() * sizeof(MonitorRecord));
  std::erase_if(records, [](const MonitorRecord& r) { return r.type == kEnd; });
  for (MonitorRecord& r : records)
    if (r.type == kNativeInvalidation) r.type = kInvalidation;
  return records;
}

}  // namespace citcat::test
