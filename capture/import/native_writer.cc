#include "capture/import/native_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "capture/import/native.h"
#include "formats/io/byte_writer.h"

namespace citcat {
namespace {

constexpr std::size_t kNameBytes = 32;

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

}  // namespace

NativeWriter::NativeWriter(ByteSink& sink, const CaptureInfo& info) : sink_(sink), info_(info) {
  ByteWriter header;
  header.bytes(kNativeMagic);
  header.u16(kNativeVersion);
  header.u16(kNativeHeaderBytes);
  header.u16(kBusRecordBytes);
  header.u16(static_cast<std::uint16_t>((info.has_positions ? kNativePositions : 0) |
                                        (info.has_clock ? kNativeClock : 0)));
  header.u8(static_cast<std::uint8_t>(info.cpu));
  header.u8(cache_code(info));
  header.u8(static_cast<std::uint8_t>(info.bus.bus_bytes));
  header.u8(static_cast<std::uint8_t>(info.cache_inferred ? 0 : info.bus.line_bytes));
  header.u32(info.address_mask);
  header.u64(info.clock_hz < 1e18 ? static_cast<std::uint64_t>(std::llround(info.clock_hz)) : 0);
  const std::size_t length = std::min(info.format.size(), kNameBytes);
  for (std::size_t i = 0; i < kNameBytes; ++i)
    header.u8(i < length ? static_cast<std::uint8_t>(info.format[i]) : std::uint8_t{0});
  header.u64(native_header_sum(header.view().first<kNativeFieldBytes>()));
  sink_.write(header.view());
}

/// The `part`th 16 bytes as a record.
BusRecord NativeWriter::pack(const BusTransaction& t, std::size_t part) const {
  const std::size_t first = part * kBusRecordData;
  BusRecord r;
  r.instructions = t.has(kPositionKnown) ? t.position.instruction : kNoCount;
  r.iterations = t.has(kPositionKnown) ? t.position.iteration : 0;
  r.clock = static_cast<std::uint32_t>(t.clock);
  r.address = t.address.plus32(static_cast<std::uint32_t>(first)).u32();
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
    lost_time_ |= records_ != 0 && t.clock - last_clock_ > ~std::uint32_t{0};
    last_clock_ = t.clock;
  }
  for (std::size_t i = 0; i < parts; ++i) put(records[i]);
  return true;
}

void NativeWriter::write_cut(Ending ending) {
  BusRecord cut;
  cut.instructions = kNoCount;
  cut.clock = static_cast<std::uint32_t>(last_clock_);
  cut.type = static_cast<std::uint8_t>(BusRecordType::cut);
  cut.size = 1;
  cut.data[0] = cut_code(ending);
  put(cut);
}

void NativeWriter::put(const BusRecord& record) {
  const auto bytes = std::bit_cast<std::array<std::uint8_t, kBusRecordBytes>>(record);
  for (const std::uint64_t word :
       std::bit_cast<std::array<std::uint64_t, kBusRecordBytes / 8>>(record)) {
    sum_ += word;
    sum_of_sums_ += sum_;
  }
  ++records_;
  sink_.write(bytes);
}

void NativeWriter::finish() {
  ByteWriter end;
  end.u64(records_);
  end.u64(0);
  end.u32(0);
  end.u8(static_cast<std::uint8_t>(BusRecordType::end));
  end.u8(kBusRecordData);
  end.u16(0);
  end.u64(sum_);
  end.u64(sum_of_sums_);
  sink_.write(end.view());
}

}  // namespace citcat
