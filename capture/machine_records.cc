#include "capture/machine_records.h"

#include "capture/record_capture.h"

namespace citcat {
namespace {

class MachineRecordFile final : public RecordFile {
 public:
  explicit MachineRecordFile(std::unique_ptr<InputStream> input)
      : RecordFile(std::move(input)), source_(*input_) {}

  bool next(BusRecord& out) override {
    std::span<const std::uint8_t, kBusRecordBytes> bytes(kNothing);
    if (!source_.next(bytes)) return false;
    out = unpack_bus_record(bytes);
    return true;
  }
  std::uint64_t where() const override { return source_.offset(); }

 private:
  static constexpr std::array<std::uint8_t, kBusRecordBytes> kNothing{};
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
