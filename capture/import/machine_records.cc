#include "capture/import/machine_records.h"

#include "capture/import/record_capture.h"

namespace citcat {
namespace {

class MachineRecordFile final : public RecordFile {
 public:
  explicit MachineRecordFile(std::unique_ptr<InputStream> input)
      : RecordFile(std::move(input)), source_(*input_) {}

  std::span<const std::uint8_t> next() override { return source_.next(); }
  std::uint64_t where(std::size_t index) const override {
    return source_.offset() + index * kBusRecordBytes;
  }

 private:
  BusRecordSource source_;
};

}  // namespace

int detect_machine_records(const CaptureProbe& probe) {
  // Below everything that has a magic number.
  return probe.is_directory ? 0 : rate_bus_records(probe.prefix, 80);
}

std::unique_ptr<RecordFile> make_machine_record_file(std::unique_ptr<InputStream> input) {
  return std::make_unique<MachineRecordFile>(std::move(input));
}

std::unique_ptr<CaptureReader> open_machine_records(const std::vector<std::string>& paths,
                                                    const CaptureOptions& options) {
  return open_record_capture("machine", paths, options, make_machine_record_file);
}

}  // namespace citcat
