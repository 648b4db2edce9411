#include "formats/captures/byu.h"

#include <algorithm>

namespace citcat {
namespace {

struct RequestName {
  ByuRequest request;
  std::string_view name;
};
constexpr RequestName kRequests[] = {
    {ByuRequest::fetch, "FETCH"},
    {ByuRequest::read, "MEMREAD"},
    {ByuRequest::read_invalidate, "MEMREADINV"},
    {ByuRequest::write, "MEMWRITE"},
    {ByuRequest::io_read, "IOREAD"},
    {ByuRequest::io_write, "IOWRITE"},
    {ByuRequest::deferred_reply, "DEFERREPLY"},
    {ByuRequest::interrupt_acknowledge, "INTA"},
    {ByuRequest::central_agent, "CNTRLAGNTRES"},
    {ByuRequest::branch_trace, "BRTRACEREC"},
    {ByuRequest::reset, "RESET"},
    {ByuRequest::shutdown, "SHUTDOWN"},
    {ByuRequest::flush, "FLUSH"},
    {ByuRequest::halt, "HALT"},
    {ByuRequest::sync, "SYNC"},
    {ByuRequest::flush_acknowledge, "FLUSHACK"},
    {ByuRequest::stop_clock_acknowledge, "STOPCLKACK"},
    {ByuRequest::smi_acknowledge, "SMIACK"},
};

std::uint32_t little_endian(std::span<const std::uint8_t> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{bytes[i]} << (8 * i);
  return value;
}

void put_little_endian(std::span<std::uint8_t> bytes, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

// Enough records to tell from chance.
constexpr std::size_t kConvincing = 16;

/// `most` when all whole records of the prefix are `valid`, less for few records.
template <std::size_t kBytes, typename Valid>
int rate(std::span<const std::uint8_t> prefix, int most, Valid valid) {
  const std::size_t whole = prefix.size() / kBytes;
  for (std::size_t i = 0; i < whole; ++i)
    if (!valid(prefix.subspan(i * kBytes).template first<kBytes>())) return 0;
  return most * static_cast<int>(std::min(whole, kConvincing)) / static_cast<int>(kConvincing);
}

}  // namespace

std::string_view byu_request_name(std::uint8_t value) {
  for (const RequestName& entry : kRequests)
    if (static_cast<std::uint8_t>(entry.request) == value) return entry.name;
  return "";
}

bool is_byu_request(std::uint8_t value) { return !byu_request_name(value).empty(); }

ByuRecord unpack_byu(std::span<const std::uint8_t, kByuRecordBytes> bytes) {
  return {little_endian(bytes),           bytes[4], bytes[5], bytes[6], bytes[7],
          little_endian(bytes.subspan(8))};
}

std::array<std::uint8_t, kByuRecordBytes> pack_byu(const ByuRecord& record) {
  std::array<std::uint8_t, kByuRecordBytes> bytes{};
  const std::span<std::uint8_t> all(bytes);
  put_little_endian(all, record.address);
  bytes[4] = record.request;
  bytes[5] = record.size;
  bytes[6] = record.attribute;
  bytes[7] = record.agent;
  put_little_endian(all.subspan(8), record.time);
  return bytes;
}

ByuPentiumRecord unpack_byu_pentium(std::span<const std::uint8_t, kByuPentiumRecordBytes> bytes) {
  const std::uint32_t address = std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
                                std::uint32_t{bytes[2]} << 8 | bytes[3];
  return {address, bytes[4], bytes[5]};
}

bool is_byu_pentium_control(std::uint8_t control) {
  constexpr std::uint16_t kInvalid = 1 << 0 | 1 << 2 | 1 << 4 | 1 << 6 | 1 << 10 | 1 << 11;
  return ((kInvalid >> (control >> 4)) & 1) == 0;
}

int rate_byu(std::span<const std::uint8_t> prefix) {
  return rate<kByuRecordBytes>(prefix, 60, [](const auto& bytes) {
    const ByuRecord record = unpack_byu(bytes);
    return is_byu_request(record.request) && record.size <= 32 && (record.attribute & 0xf0) == 0;
  });
}

int rate_byu_pentium(std::span<const std::uint8_t> prefix) {
  return rate<kByuPentiumRecordBytes>(prefix, 50, [](const auto& bytes) {
    const ByuPentiumRecord record = unpack_byu_pentium(bytes);
    return (record.address & 7) == 0 && is_byu_pentium_control(record.control) &&
           record.enables != 0xff;
  });
}

}  // namespace citcat
