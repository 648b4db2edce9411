#include "capture/bus_record.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/error.h"

namespace citcat {
namespace {

// Records are moved as whole words; hosts with another byte order would need swaps here.
static_assert(std::endian::native == std::endian::little);

// Bits of the record's flags that a transaction has under the same number (BusFlag).
constexpr std::uint8_t kSharedFlags =
    kLine | kWriteBack | kUncacheable | kSnoop | kStateWindow | kStoreFill;
// Flags of instruction_start records.
constexpr std::uint8_t kRecordPrefix = 1;
constexpr std::uint8_t kRecordFlushed = 2;
// Some monitors that see inside the processor mark page walks; others cannot know. No rule may
// depend on it.
constexpr std::uint8_t kRecordPageWalk = 128;

struct TypeRow {
  BusRecordType type;
  std::string_view name;
  BusOp op;
};
constexpr TypeRow kTypes[] = {
    {BusRecordType::code_read, "CODE_RD", BusOp::code_read},
    {BusRecordType::data_read, "MEM_RD", BusOp::data_read},
    {BusRecordType::data_write, "MEM_WR", BusOp::data_write},
    {BusRecordType::io_read, "IO_RD", BusOp::io_read},
    {BusRecordType::io_write, "IO_WR", BusOp::io_write},
    {BusRecordType::interrupt_acknowledge, "INTA", BusOp::interrupt_acknowledge},
    {BusRecordType::halt, "HALT", BusOp::halt},
    {BusRecordType::shutdown, "SHUTDOWN", BusOp::shutdown},
    {BusRecordType::flush, "FLUSH", BusOp::flush},
    {BusRecordType::nmi, "NMI", BusOp::nmi},
    {BusRecordType::reset, "RESET", BusOp::reset},
    {BusRecordType::smi, "SMI", BusOp::smi},
    {BusRecordType::instruction_start, "INSTR", BusOp::instruction_start},
};
constexpr std::uint8_t kLastType = 13;

template <typename T, std::size_t kOffset>
T load(std::span<const std::uint8_t, kBusRecordBytes> bytes) {
  T value;
  std::memcpy(&value, bytes.subspan<kOffset, sizeof(T)>().data(), sizeof(T));
  return value;
}
template <std::size_t kOffset, typename T>
void store(std::span<std::uint8_t, kBusRecordBytes> bytes, T value) {
  std::memcpy(bytes.subspan<kOffset, sizeof(T)>().data(), &value, sizeof(T));
}

std::string check_memory(const BusRecord& r, std::uint32_t bus_bytes) {
  if ((r.flags & kLine) != 0) {
    if (r.size != kBusRecordData || r.address % kBusRecordData != 0) {
      return "line part must be 16 aligned bytes, has " + std::to_string(r.size) + " at offset " +
             std::to_string(r.address % kBusRecordData) + " of its line";
    }
    if (r.burst > 1) return "burst: expected 0 or 1, found " + std::to_string(r.burst);
    return {};
  }
  if (r.size == 0 || r.address % bus_bytes + r.size > bus_bytes) {
    return "size: " + std::to_string(r.size) + " bytes at offset " +
           std::to_string(r.address % bus_bytes) + " are no transfer of a " +
           std::to_string(bus_bytes) + "-byte bus";
  }
  return {};
}

std::string check_io(const BusRecord& r) {
  if (r.size != 1 && r.size != 2 && r.size != 4) {
    return "size: an I/O access has 1, 2 or 4 bytes, found " + std::to_string(r.size);
  }
  if (r.address > 0xffff) return "address: " + std::to_string(r.address) + " is no I/O port";
  return {};
}

std::string check_special(const BusRecord& r) {
  switch (static_cast<BusRecordType>(r.type)) {
    case BusRecordType::interrupt_acknowledge:
      return r.size == 1 ? "" : "size: an acknowledge carries 1 byte, found " + std::to_string(r.size);
    case BusRecordType::flush:
      if (r.size == 1 && (r.data[0] == 1 || r.data[0] == 2)) return {};
      return "data: a flush is 1 (INVD) or 2 (WBINVD)";
    default:
      return r.size <= 1 ? "" : "size: expected 0 or 1, found " + std::to_string(r.size);
  }
}

}  // namespace

std::string_view bus_record_type_name(std::uint8_t type) {
  return type >= 1 && type <= kLastType ? kTypes[type - 1].name : std::string_view{};
}

std::uint8_t bus_record_type_of(std::string_view name) {
  const auto* const row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                       [&](const TypeRow& t) { return t.name == name; });
  return row == std::end(kTypes) ? std::uint8_t{0} : static_cast<std::uint8_t>(row->type);
}

std::uint8_t bus_record_type_of(BusOp op) {
  const auto* const row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                       [&](const TypeRow& t) { return t.op == op; });
  return row == std::end(kTypes) ? std::uint8_t{0} : static_cast<std::uint8_t>(row->type);
}

BusRecord unpack_bus_record(std::span<const std::uint8_t, kBusRecordBytes> bytes) {
  BusRecord r;
  r.instructions = load<std::uint64_t, 0>(bytes);
  r.clock = load<std::uint32_t, 8>(bytes);
  r.address = load<std::uint32_t, 12>(bytes);
  r.iterations = load<std::uint32_t, 16>(bytes);
  r.type = bytes[20];
  r.size = bytes[21];
  r.flags = bytes[22];
  r.burst = bytes[23];
  r.data = load<std::array<std::uint8_t, kBusRecordData>, 24>(bytes);
  return r;
}

void pack_bus_record(const BusRecord& r, std::span<std::uint8_t, kBusRecordBytes> bytes) {
  store<0>(bytes, r.instructions);
  store<8>(bytes, r.clock);
  store<12>(bytes, r.address);
  store<16>(bytes, r.iterations);
  bytes[20] = r.type;
  bytes[21] = r.size;
  bytes[22] = r.flags;
  bytes[23] = r.burst;
  store<24>(bytes, r.data);
}

std::string check_bus_record(const BusRecord& r, std::uint32_t bus_bytes) {
  if (r.type < 1 || r.type > kLastType) {
    return "type: expected 1 to " + std::to_string(kLastType) + ", found " + std::to_string(r.type);
  }
  if (r.size > kBusRecordData) return "size: at most 16, found " + std::to_string(r.size);
  const bool start = r.type == static_cast<std::uint8_t>(BusRecordType::instruction_start);
  const unsigned allowed = start ? kRecordPrefix | kRecordFlushed : kSharedFlags | kRecordPageWalk;
  if ((r.flags & ~allowed) != 0) return "flags: unknown bits in " + std::to_string(r.flags);
  // Two words are enough to see that what lies beyond the data is zero.
  for (std::size_t i = r.size; i < kBusRecordData; ++i) {
    if (r.data[i] != 0) return "data: byte " + std::to_string(i) + " lies beyond the size, not zero";
  }
  switch (static_cast<BusRecordType>(r.type)) {
    case BusRecordType::code_read:
    case BusRecordType::data_read:
    case BusRecordType::data_write:
      return check_memory(r, bus_bytes);
    case BusRecordType::io_read:
    case BusRecordType::io_write:
      return check_io(r);
    case BusRecordType::instruction_start:
      return {};
    default:
      return check_special(r);
  }
}

void BusRecordDecoder::decode(const BusRecord& r, BusTransaction& out) {
  if (r.clock < last_clock_) high_clock_ += std::uint64_t{1} << 32;
  last_clock_ = r.clock;
  out.index = count_++;
  out.clock = high_clock_ + r.clock;
  out.address = PhysAddr{r.address};
  out.op = kTypes[r.type - 1].op;
  out.size = r.size;
  out.flags = kClockKnown;
  out.position = {};
  if (r.instructions != kNoCount) {
    out.position = {r.instructions, r.iterations};
    out.flags |= kPositionKnown;
  }
  if (out.op == BusOp::instruction_start) {
    if ((r.flags & kRecordPrefix) != 0) out.flags |= kPrefix;
    if ((r.flags & kRecordFlushed) != 0) out.flags |= kFlushed;
  } else {
    out.flags |= static_cast<std::uint16_t>(r.flags & kSharedFlags);
  }
  std::copy(r.data.begin(), r.data.end(), out.data.begin());
  std::fill(out.data.begin() + kBusRecordData, out.data.end(), std::uint8_t{0});
  learnt_ = false;
  if (!out.is_memory()) return;
  if ((r.flags & kLine) == 0) {
    learnt_ = r.size > widest_;
    widest_ = std::max(widest_, r.size);
    return;
  }
  const bool second_part = r.burst == 1;
  const bool write_back = (r.flags & (kWriteBack | kStoreFill)) != 0;
  learnt_ = !saw_line_ || (second_part && !saw_second_part_) || (write_back && !saw_write_back_);
  saw_line_ = true;
  saw_second_part_ |= second_part;
  saw_write_back_ |= write_back;
}

BusModel BusRecordDecoder::seen() const {
  BusModel bus;
  bus.bus_bytes = widest_ > 4 ? 8 : 4;
  if (!saw_line_) return bus;
  bus.line_bytes = saw_second_part_ ? 32 : 16;
  // Processors with 32-byte lines have write-back caches (Intel SDM vol. 3, 11.1); those with
  // 16-byte lines are write-through until a dirty line is seen to leave.
  bus.form = saw_write_back_ || saw_second_part_ ? CacheForm::write_back : CacheForm::write_through;
  return bus;
}

bool BusRecordSource::refill() {
  input_->consume(used_);
  used_ = 0;
  block_ = {};
  const auto block = input_->peek(kBusRecordBytes * 1024);
  if (block.empty()) return false;
  const std::size_t whole = block.size() - block.size() % kBusRecordBytes;
  if (whole == 0) {
    throw FormatError(input_->name(), input_->offset(),
                      "the capture ends inside a record: expected " +
                          std::to_string(kBusRecordBytes) + " bytes, found " +
                          std::to_string(block.size()));
  }
  block_ = block.first(whole);
  return true;
}

}  // namespace citcat
