#include "capture/import/native_writer.h"

#include <algorithm>
#include <cmath>

#include "capture/import/native.h"

namespace citcat {
namespace {

std::uint8_t cache_code(const CaptureInfo& info) {
  if (info.cache_inferred) return 0;
  switch (info.bus.form) {
    case CacheForm::none:
      return 1;
    case CacheForm::write_through:
      return 2;
    case CacheForm::write_back:
      return 3;
  }
  return 0;
}

NativeHeader header_of(const CaptureInfo& info) {
  NativeHeader header;
  header.version = kNativeVersion;
  header.flags = static_cast<std::uint16_t>((info.has_positions ? kNativePositions : 0) |
                                            (info.has_clock ? kNativeClock : 0));
  header.cpu = static_cast<std::uint8_t>(info.cpu);
  header.cache = cache_code(info);
  header.bus_bytes = static_cast<std::uint8_t>(info.bus.bus_bytes);
  header.line_bytes = static_cast<std::uint8_t>(info.cache_inferred ? 0 : info.bus.line_bytes);
  header.address_mask = info.address_mask;
  if (info.clock_hz < 1e18)
    header.clock_hz = static_cast<std::uint64_t>(std::llround(info.clock_hz));
  header.monitor = info.format;
  return header;
}

}  // namespace

NativeWriter::NativeWriter(ByteSink& sink, const CaptureInfo& info)
    : out_(sink, header_of(info)), info_(info) {}

/// The `part`th 16 bytes as a record.
BusRecord NativeWriter::pack(const BusTransaction& t, std::size_t part) const {
  const std::size_t first = part * kBusRecordData;
  BusRecord r;
  r.instructions = t.has(kPositionKnown) ? t.position.instruction : kNoCount;
  r.iterations = t.has(kPositionKnown) ? t.position.iteration : 0;
  r.clock = static_cast<std::uint32_t>(t.clock);
  r.address = t.address.plus32(static_cast<std::uint32_t>(first)).low32();
  r.type = bus_record_type_of(t.op);
  r.size = static_cast<std::uint8_t>(std::min(t.size - first, kBusRecordData));
  r.flags = bus_record_flags_of(t);
  const bool in_halves = t.size > kBusRecordData || info_.bus.line_bytes > kBusRecordData;
  if (t.has(kLine) && in_halves)
    r.burst = static_cast<std::uint8_t>(r.address / kBusRecordData % 2);
  std::copy_n(t.data.begin() + static_cast<std::ptrdiff_t>(first), r.size, r.data.begin());
  return r;
}

bool NativeWriter::write(const BusTransaction& t) {
  const std::size_t parts = t.size > kBusRecordData ? 2 : 1;
  std::array<BusRecord, 2> records;
  for (std::size_t i = 0; i < parts; ++i) {
    records[i] = pack(t, i);
    if (!check_bus_record(records[i], info_.bus.bus_bytes).empty()) return false;
  }
  if (t.has(kClockKnown)) {
    lost_time_ |= out_.records() != 0 && t.clock - last_clock_ > ~std::uint32_t{0};
    last_clock_ = t.clock;
  }
  const auto upper = static_cast<std::uint32_t>(t.address.value >> 32);
  if (t.is_memory() && upper != upper_) out_.put(high_record(upper_ = upper));
  for (std::size_t i = 0; i < parts; ++i) out_.put(records[i]);
  return true;
}

void NativeWriter::write_reached(const Position& position) {
  BusRecord record = reached_record(position);
  record.clock = static_cast<std::uint32_t>(last_clock_);
  out_.put(record);
}

void NativeWriter::write_cut(Ending ending) {
  BusRecord cut;
  cut.instructions = kNoCount;
  cut.clock = static_cast<std::uint32_t>(last_clock_);
  cut.type = static_cast<std::uint8_t>(BusRecordType::cut);
  cut.size = 1;
  cut.data[0] = cut_code(ending);
  out_.put(cut);
}

}  // namespace citcat
