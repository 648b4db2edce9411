// A capture of a bus that several processors share, from its records to an archive, which must be
// sound, and the check of what the processors took from each other.
//
// The first byte is odd for a native capture, which gets the header and the end that belong to its
// records. The second is the length of what follows of values that cross no bus, which processor 0
// was told; then come records.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "capture/import/native.h"
#include "capture/processors/machine_import.h"
#include "events/archive/machine_file.h"
#include "events/archive/recording_check.h"
#include "events/processors/cross_check.h"
#include "formats/captures/bus_record.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

namespace {

/// The header and the end record of a native capture around its records.
std::vector<std::uint8_t> native_capture(std::span<const std::uint8_t> records) {
  using namespace citcat;
  constexpr std::uint8_t kP6 = 6, kNotDeclared = 0, kBusBytes = 4, kEnd = 255;
  ByteWriter fields;
  for (const std::uint8_t byte : kNativeMagic) fields.u8(byte);
  fields.u16(kNativeProcessorsVersion);
  fields.u16(kNativeHeaderBytes);
  fields.u16(kBusRecordBytes);
  fields.u16(kNativePositions | kNativeClock | kNativeSharing);
  for (const std::uint8_t byte : {kP6, kNotDeclared, kBusBytes, std::uint8_t{0}}) fields.u8(byte);
  fields.u32(0xffffffff);
  std::vector<std::uint8_t> bytes = fields.take();
  bytes.resize(kNativeFieldBytes);
  ByteWriter rest;
  rest.u64(native_header_sum(std::span(bytes).first<kNativeFieldBytes>()));
  std::uint64_t sum = 0, sum_of_sums = 0;
  for (std::size_t at = 0; at < records.size(); at += sizeof sum) {
    std::uint64_t word;
    std::memcpy(&word, &records[at], sizeof word);
    sum_of_sums += sum += word;
  }
  std::array<std::uint8_t, kBusRecordBytes> end{};
  const std::uint64_t count = records.size() / kBusRecordBytes;
  std::memcpy(end.data() + offsetof(BusRecord, instructions), &count, sizeof count);
  end[offsetof(BusRecord, type)] = kEnd;
  end[offsetof(BusRecord, size)] = kBusRecordData;
  std::memcpy(end.data() + offsetof(BusRecord, data), &sum, sizeof sum);
  std::memcpy(end.data() + offsetof(BusRecord, data) + sizeof sum, &sum_of_sums, sizeof sum);
  const std::vector<std::uint8_t> header_sum = rest.take();
  bytes.insert(bytes.end(), header_sum.begin(), header_sum.end());
  bytes.insert(bytes.end(), records.begin(), records.end());
  bytes.insert(bytes.end(), end.begin(), end.end());
  return bytes;
}

/// False where the capture is refused. `values`: a file, or "" for none.
bool import_processors(const std::string& capture, const std::string& values, bool native,
                       const std::string& archive) {
  citcat::MachineImportOptions options;
  options.each.capture.format = native ? "native" : "machine-smp";
  options.each.capture.cpu = citcat::CpuModel::p6;
  options.internal_paths = {values};
  try {
    (void)citcat::import_machine({capture}, options, archive);
    return true;
  } catch (const citcat::InternalError&) {
    throw;
  } catch (const citcat::Error&) {
    return false;
  }
}

}  // namespace

CITCAT_FUZZ_TARGET(processor_capture) {
  constexpr std::size_t kHead = 2;
  if (size < kHead) return 0;
  const bool native = (data[0] & 1U) != 0;
  std::span<const std::uint8_t> rest(data + kHead, size - kHead);
  const auto values = rest.first(std::min<std::size_t>(rest.size(), data[1]));
  rest = rest.subspan(values.size());
  const auto records = rest.first(rest.size() / citcat::kBusRecordBytes * citcat::kBusRecordBytes);
  const citcat::fuzz::FileInMemory internal(values);
  const citcat::fuzz::FileInMemory capture(
      native ? native_capture(records) : std::vector<std::uint8_t>(records.begin(), records.end()));
  const citcat::fuzz::FileInMemory archive;
  const std::string its = values.empty() ? "" : internal.path();
  if (!import_processors(capture.path(), its, native, archive.path())) return 0;
  CITCAT_ASSERT(citcat::check_recording(archive.path()).sound());
  const auto machine = citcat::MachineFile::find(archive.path());
  if (!machine) return 0;
  const std::vector<citcat::RecordingFile> files = citcat::open_processors(*machine);
  citcat::CrossCheck check = citcat::cross_check_of(*machine, files);
  citcat::SharedBus bus = citcat::shared_bus_of(*machine, files);
  (void)citcat::check_shared_bus(bus, check);
  return 0;
}
