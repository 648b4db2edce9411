#include "capture/import/native_stream.h"

#include <algorithm>
#include <array>
#include <bit>

#include "capture/import/native.h"
#include "formats/io/byte_writer.h"

namespace citcat {
namespace {

constexpr std::size_t kNameBytes = 32;

}  // namespace

NativeStream::NativeStream(ByteSink& sink, const NativeHeader& header) : sink_(sink) {
  ByteWriter out;
  out.bytes(kNativeMagic);
  out.u16(header.version);
  out.u16(kNativeHeaderBytes);
  out.u16(kBusRecordBytes);
  out.u16(header.flags);
  out.u8(header.cpu);
  out.u8(header.cache);
  out.u8(header.bus_bytes);
  out.u8(header.line_bytes);
  out.u32(header.address_mask);
  out.u64(header.clock_hz);
  const std::size_t length = std::min(header.monitor.size(), kNameBytes);
  for (std::size_t i = 0; i < kNameBytes; ++i)
    out.u8(i < length ? static_cast<std::uint8_t>(header.monitor[i]) : std::uint8_t{0});
  out.u64(native_header_sum(out.view().first<kNativeFieldBytes>()));
  sink_.write(out.view());
}

void NativeStream::put(const BusRecord& record) {
  const auto bytes = std::bit_cast<std::array<std::uint8_t, kBusRecordBytes>>(record);
  for (const std::uint64_t word :
       std::bit_cast<std::array<std::uint64_t, kBusRecordBytes / 8>>(record)) {
    sum_ += word;
    sum_of_sums_ += sum_;
  }
  ++records_;
  sink_.write(bytes);
}

void NativeStream::finish() {
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
