#include "capture/import/bus_record.h"

#include <algorithm>

#include "events/machine/stand_ins.h"
#include "events/startup_event.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

// Bits of the record's flags that a transaction has under the same number (BusFlag).
constexpr std::uint8_t kSharedFlags =
    kLine | kWriteBack | kUncacheable | kSnoop | kStateWindow | kStoreFill;
// Flags of instruction_start records.
constexpr std::uint8_t kRecordPrefix = 1;
constexpr std::uint8_t kRecordFlushed = 2;
constexpr std::uint8_t kRecordBranchTarget = 4;
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
constexpr std::uint8_t kLastTransaction = 13;
constexpr auto kCut = static_cast<std::uint8_t>(BusRecordType::cut);
constexpr std::string_view kCutName = "CUT";
constexpr auto kStandIn = static_cast<std::uint8_t>(BusRecordType::stand_in);
constexpr std::string_view kStandInName = "STANDIN";
constexpr auto kReached = static_cast<std::uint8_t>(BusRecordType::reached);
constexpr std::string_view kReachedName = "REACHED";
constexpr auto kHigh = static_cast<std::uint8_t>(BusRecordType::high);
constexpr std::string_view kHighName = "HIGH";

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
           std::to_string(r.address % bus_bytes) + " are not a transfer on a bus of " +
           std::to_string(bus_bytes) + " bytes";
  }
  return {};
}

/// An access, or a transfer that is part of one. Four bytes at port FFFF end at 10002, and parts of
/// them are transfers of their own on most buses.
std::string check_io(const BusRecord& r) {
  constexpr std::uint32_t kLastByte = 0x10002;
  if (r.size < 1 || r.size > 4) {
    return "size: an I/O transfer has 1 to 4 bytes, found " + std::to_string(r.size);
  }
  if (r.size == 3 && r.address % 4 > 1) {
    return "size: 3 bytes at offset " + std::to_string(r.address % 4) +
           " are not a transfer: they cross an aligned dword";
  }
  if (r.address > kLastByte || r.address + r.size - 1 > kLastByte) {
    return "address: " + std::to_string(r.address) + " is not an I/O port";
  }
  return {};
}

std::string check_special(const BusRecord& r) {
  switch (static_cast<BusRecordType>(r.type)) {
    case BusRecordType::interrupt_acknowledge:
      return r.size == 1 ? ""
                         : "size: an acknowledge carries 1 byte, found " + std::to_string(r.size);
    case BusRecordType::flush:
      if (r.size == 1 && (r.data[0] == 1 || r.data[0] == 2)) return {};
      return "data: a flush is 1 (INVD) or 2 (WBINVD)";
    case BusRecordType::reset:
      if (r.size == 0 || (r.size == 1 && r.data[0] <= kResetBehindShutdown)) return {};
      return "data: a reset has no data, or 1 or 2 if counting goes on after it";
    case BusRecordType::cut:
      if (r.size == 1 && ending_of_cut(r.data[0]) != Ending::unknown) return {};
      return "data: the reason of an interruption is 1 to 4";
    case BusRecordType::stand_in:
      if (r.size == 8) return StandIns().add(PhysAddr{r.address}, stood_for(r));
      return "size: an address has 8 bytes, found " + std::to_string(r.size);
    case BusRecordType::reached:
      if (r.size == 0 && r.instructions != kNoCount) return {};
      return "expected a count of instructions and no data, found " +
             std::string(r.size == 0 ? "no count" : "data");
    case BusRecordType::high:
      if (r.size == 0 && r.address >> (kAddressBits - 32) == 0) return {};
      return "address: the upper half of one has " + std::to_string(kAddressBits - 32) +
             " bits and no data";
    default:
      return r.size <= 1 ? "" : "size: expected 0 or 1, found " + std::to_string(r.size);
  }
}

}  // namespace

std::string_view bus_record_type_name(std::uint8_t type) {
  if (type == kCut) return kCutName;
  if (type == kStandIn) return kStandInName;
  if (type == kReached) return kReachedName;
  if (type == kHigh) return kHighName;
  return type >= 1 && type <= kLastTransaction ? kTypes[type - 1].name : std::string_view{};
}

std::uint8_t bus_record_type_of(std::string_view name) {
  if (name == kCutName) return kCut;
  if (name == kStandInName) return kStandIn;
  if (name == kReachedName) return kReached;
  if (name == kHighName) return kHigh;
  const auto* const row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                       [&](const TypeRow& t) { return t.name == name; });
  return row == std::end(kTypes) ? std::uint8_t{0} : static_cast<std::uint8_t>(row->type);
}

std::uint8_t bus_record_type_of(BusOp op) {
  const auto* const row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                       [&](const TypeRow& t) { return t.op == op; });
  return row == std::end(kTypes) ? std::uint8_t{0} : static_cast<std::uint8_t>(row->type);
}

std::uint8_t bus_record_flags_of(const BusTransaction& t) {
  if (t.op != BusOp::instruction_start) return static_cast<std::uint8_t>(t.flags & kSharedFlags);
  return static_cast<std::uint8_t>((t.has(kPrefix) ? kRecordPrefix : 0) |
                                   (t.has(kFlushed) ? kRecordFlushed : 0) |
                                   (t.has(kBranchTarget) ? kRecordBranchTarget : 0));
}

std::uint8_t cut_code(Ending ending) {
  return static_cast<std::uint8_t>(static_cast<int>(ending) -
                                   static_cast<int>(Ending::source_gone) + 1);
}

Ending ending_of_cut(std::uint8_t code) {
  constexpr std::array kEndings{Ending::unknown, Ending::source_gone, Ending::storage_full,
                                Ending::by_hand, Ending::monitor_failed};
  return code < kEndings.size() ? kEndings[code] : Ending::unknown;
}

PhysAddr stood_for(const BusRecord& r) {
  std::uint64_t address = 0;
  std::memcpy(&address, r.data.data(), sizeof address);
  return PhysAddr{address};
}

BusRecord high_record(std::uint32_t upper) {
  BusRecord r;
  r.instructions = kNoCount;
  r.address = upper;
  r.type = kHigh;
  return r;
}

BusRecord reached_record(const Position& position) {
  BusRecord r;
  r.instructions = position.instruction;
  r.iterations = position.iteration;
  r.type = kReached;
  return r;
}

std::string check_bus_record(const BusRecord& r, std::uint32_t bus_bytes) {
  if (r.type < 1 || (r.type > kStandIn && r.type != kReached && r.type != kHigh)) {
    return "type: expected 1 to " + std::to_string(kStandIn) + ", " + std::to_string(kReached) +
           " or " + std::to_string(kHigh) + ", found " + std::to_string(r.type);
  }
  if (r.size > kBusRecordData) return "size: at most 16, found " + std::to_string(r.size);
  const bool start = r.type == static_cast<std::uint8_t>(BusRecordType::instruction_start);
  const unsigned allowed =
      start ? kRecordPrefix | kRecordFlushed | kRecordBranchTarget : kSharedFlags | kRecordPageWalk;
  if ((r.flags & ~allowed) != 0) return "flags: unknown bits in " + std::to_string(r.flags);
  constexpr unsigned kLastBurst = 15;
  if (r.burst > kLastBurst) {
    return "burst: expected 0 or 1, found " + std::to_string(r.burst) + ": a record of processor " +
           std::to_string(r.burst >> 4) + ", as those of --format machine-smp are";
  }
  // Two words are enough to see that what lies beyond the data is zero.
  for (std::size_t i = r.size; i < kBusRecordData; ++i) {
    if (r.data[i] != 0)
      return "data: byte " + std::to_string(i) + " lies beyond the size, not zero";
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

std::size_t BusRecordDecoder::decode_plain(std::span<const std::uint8_t> records,
                                           const BusRecordFields& fields,
                                           std::span<BusTransaction> out) {
  const bool positions = fields.positions;
  std::uint64_t index = count_, high_clock = high_clock_;
  std::uint32_t last_clock = last_clock_;
  const std::size_t count = records.size() / kBusRecordBytes;
  std::size_t i = 0;
  for (; i < count; ++i) {
    const BusRecord r =
        unpack_bus_record(records.subspan(i * kBusRecordBytes).first<kBusRecordBytes>());
    const Kind& kind = kinds_[Kind::slot_of(Kind::key_of(r))];
    if (!kind.takes(r)) [[unlikely]]
      break;
    high_clock += r.clock < last_clock ? std::uint64_t{1} << 32 : 0;
    last_clock = r.clock;
    const bool counted = positions && r.instructions != kNoCount;
    BusTransaction& t = out[i];
    t.index = index++;
    t.clock = high_clock + r.clock;
    t.position = {counted ? r.instructions : 0, counted ? r.iterations : 0};
    t.address = PhysAddr{r.address};
    t.op = kind.op;
    t.size = kind.size;
    t.flags = static_cast<std::uint16_t>(kind.flags | (counted ? unsigned{kPositionKnown} : 0U));
    std::memcpy(t.data.data(), r.data.data(), kBusRecordData);
    std::memset(t.data.data() + kBusRecordData, 0, t.data.size() - kBusRecordData);
  }
  count_ = index;
  high_clock_ = high_clock;
  last_clock_ = last_clock;
  return i;
}

AccessRun BusRecordDecoder::run(std::span<const std::uint8_t> records,
                                const BusRecordFields& fields) {
  const std::size_t most = std::min(records.size() / kBusRecordBytes, number_.size());
  AccessRun run;
  run.records = records.first(most * kBusRecordBytes);
  run.kinds = &run_kinds_;
  run.index = count_;
  run.high_clock = high_clock_;
  if (most == 0) return run;
  const std::uint64_t first = run.record(0).instructions;
  run.counted = fields.positions && first != kNoCount;
  run.lowest = run.highest = first;
  // Few enough that to look at them twice does not matter.
  constexpr std::size_t kPiece = 32;
  const std::size_t wide = is_wide_ && run.counted ? take_wide(run) : 0;
  std::size_t count = wide;
  // What the vectors stopped at is looked at by itself, unless they lack its kind.
  const bool all_seen = is_wide_ && run.counted && wide_.has_all();
  while (!all_seen && count < most && take_all(run, count, std::min(kPiece, most - count)))
    count += std::min(kPiece, most - count);
  if (count < most) count += take_some(run, count, fields.positions);
  run.number = std::span(number_).first(count);
  if (is_wide_) {
    fill_columns(run, wide, count);
    run.columns = &columns_;
  }
  return run;
}

/// Those from the first on that belong to the run and count up; returns how many.
std::size_t BusRecordDecoder::take_wide(AccessRun& run) {
  if (new_kinds_) {
    std::vector<SimdRecords::Kind> kinds;
    for (std::size_t slot = 0; slot < kinds_.size(); ++slot) {
      const Kind& kind = kinds_[slot];
      if (kind.key == Kind::kNoKey) continue;
      kinds.push_back({static_cast<std::uint32_t>(kind.key), static_cast<std::uint8_t>(slot),
                       static_cast<std::uint8_t>(kind.within), static_cast<std::uint8_t>(kind.last),
                       access_shape(kind.op, kind.size, kind.flags)});
    }
    wide_.set_kinds(kinds);
    new_kinds_ = false;
  }
  SimdRecords::Last last{run.highest, last_clock_, 0};
  const std::size_t count = wide_.take(run.records, 0, last, columns_, number_);
  run.highest = last.instructions;
  run.flags = last.flags;
  return count;
}

/// Fills in the columns of records that were taken one by one.
void BusRecordDecoder::fill_columns(const AccessRun& run, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    const BusRecord r = run.record(i);
    const RunKind& kind = run_kinds_[number_[i]];
    columns_.instructions[i] = r.instructions;
    columns_.clock[i] = r.clock;
    columns_.address[i] = r.address;
    columns_.iterations[i] = r.iterations;
    columns_.shape[i] = access_shape(kind.op, kind.size, kind.flags);
  }
}

/// The clock of the record before this one of a run.
std::uint32_t BusRecordDecoder::clock_before(const AccessRun& run, std::size_t i) const {
  return i == 0 ? last_clock_ : run.record(i - 1).clock;
}

/// Whether `count` records from `first` on belong to the run and count up. Without a condition on
/// the way, because the answer is nearly always yes.
bool BusRecordDecoder::take_all(AccessRun& run, std::size_t first, std::size_t count) {
  using Words = std::uint64_t __attribute__((vector_size(16)));
  if (!run.counted) return false;
  std::uint64_t instructions = run.highest, clock = clock_before(run, first);
  Words beyond{};
  std::uint64_t wrong = 0, backwards = 0;
  unsigned flags = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    const BusRecord r = run.record(i);
    const std::uint32_t key = Kind::key_of(r);
    const std::size_t slot = Kind::slot_of(key);
    const Kind& kind = kinds_[slot];
    Words data, mask;
    std::memcpy(&data, r.data.data(), sizeof data);
    std::memcpy(&mask, kind.beyond.data(), sizeof mask);
    beyond |= data & mask;
    wrong |= key ^ kind.key;
    // The highest bit shows what went below zero; no count of instructions reaches it.
    backwards |= std::uint64_t{kind.last} - (r.address & kind.within);
    backwards |= r.clock - clock;
    backwards |= r.instructions | (r.instructions - instructions);
    clock = r.clock;
    instructions = r.instructions;
    flags |= kind.flags;
    number_[i] = static_cast<std::uint8_t>(slot);
  }
  if ((beyond[0] | beyond[1] | wrong | backwards >> 63) != 0) return false;
  run.flags = static_cast<std::uint16_t>(run.flags | flags);
  run.highest = instructions;
  return true;
}

/// Those from `first` on, up to one that does not belong to the run; returns how many.
std::size_t BusRecordDecoder::take_some(AccessRun& run, std::size_t first, bool positions) {
  std::uint32_t last_clock = clock_before(run, first);
  unsigned flags = run.flags;
  std::size_t i = first;
  for (; i < run.records.size() / kBusRecordBytes; ++i) {
    const BusRecord r = run.record(i);
    const std::size_t slot = Kind::slot_of(Kind::key_of(r));
    const Kind& kind = kinds_[slot];
    const bool counted = positions && r.instructions != kNoCount;
    if (!kind.takes(r) || r.clock < last_clock || counted != run.counted) break;
    last_clock = r.clock;
    number_[i] = static_cast<std::uint8_t>(slot);
    flags |= kind.flags;
    run.highest = std::max(run.highest, r.instructions);
    run.lowest = std::min(run.lowest, r.instructions);
    run.disorder = std::max(run.disorder, run.highest - r.instructions);
  }
  run.flags = static_cast<std::uint16_t>(flags);
  return i - first;
}

void BusRecordDecoder::take(const AccessRun& run) {
  if (run.empty()) return;
  count_ += run.size();
  last_clock_ = run.record(run.size() - 1).clock;
}

void BusRecordDecoder::decode(const BusRecord& record, const BusRecordFields& fields,
                              BusTransaction& out) {
  if (record.clock < last_clock_) high_clock_ += std::uint64_t{1} << 32;
  last_clock_ = record.clock;
  const bool counted = fields.positions && record.instructions != kNoCount;
  out = {};
  out.index = count_++;
  out.clock = high_clock_ + record.clock;
  out.address = PhysAddr{record.address};
  out.size = record.size;
  if (counted) out.position = {record.instructions, record.iterations};
  std::copy(record.data.begin(), record.data.end(), out.data.begin());
  decode_kind(record, out);
  if (fields.clock) out.flags |= kClockKnown;
  learnt_ = false;
  if (out.is_memory()) {
    learn(record);
    const std::size_t slot = Kind::slot_of(Kind::key_of(record));
    new_kinds_ |= kinds_[slot].key != Kind::key_of(record);
    kinds_[slot] = Kind(record, out, fields.bus_bytes);
    run_kinds_[slot] = RunKind(out.op, out.size, out.flags);
  }
  if (counted) out.flags |= kPositionKnown;
}

BusRecordDecoder::Kind::Kind(const BusRecord& r, const BusTransaction& t, std::uint32_t bus_bytes)
    : key(key_of(r)), size(r.size), op(t.op), flags(t.flags) {
  std::fill(beyond.begin() + size, beyond.end(), std::uint8_t{0xff});
  const std::uint32_t unit = t.has(kLine) ? std::uint32_t{kBusRecordData} : bus_bytes;
  within = unit - 1;
  last = unit - size;
}

void BusRecordDecoder::decode_kind(const BusRecord& r, BusTransaction& out) const {
  out.op = kTypes[r.type - 1].op;
  if (out.op == BusOp::instruction_start) {
    const bool prefix = (r.flags & kRecordPrefix) != 0;
    const bool flushed = (r.flags & kRecordFlushed) != 0;
    const bool target = (r.flags & kRecordBranchTarget) != 0;
    out.flags = static_cast<std::uint16_t>((prefix ? kPrefix : 0) | (flushed ? kFlushed : 0) |
                                           (target ? kBranchTarget : 0));
  } else {
    out.flags = r.flags & kSharedFlags;
  }
}

void BusRecordDecoder::learn(const BusRecord& r) {
  if ((r.flags & kLine) == 0) {
    learnt_ = r.size > widest_;
    widest_ = std::max(widest_, r.size);
    return;
  }
  const unsigned shows = (r.flags & kSharedFlags) | (r.burst == 1 ? unsigned{kSecondPart} : 0U);
  learnt_ = (shows & ~unsigned{shown_}) != 0;
  shown_ = static_cast<std::uint8_t>(shown_ | shows);
}

BusModel BusRecordDecoder::seen() const {
  BusModel bus;
  bus.bus_bytes = widest_ > 4 ? 8 : 4;
  if ((shown_ & kLine) == 0) return bus;
  const bool second_part = (shown_ & kSecondPart) != 0;
  bus.line_bytes = second_part ? 32 : 16;
  // Processors with 32-byte lines have write-back caches (Intel SDM vol. 3, 11.1); those with
  // 16-byte lines are write-through until a dirty line is seen to leave.
  const bool write_back = second_part || (shown_ & (kWriteBack | kStoreFill)) != 0;
  bus.form = write_back ? CacheForm::write_back : CacheForm::write_through;
  return bus;
}

std::span<const std::uint8_t> BusRecordSource::next() {
  // Small enough to stay in the first-level cache from reader to decoder.
  constexpr std::size_t kMostRecords = 256;
  input_->consume(used_);
  used_ = 0;
  const auto block = input_->peek(kBusRecordBytes * kMostRecords);
  if (block.empty()) return {};
  used_ = block.size() - block.size() % kBusRecordBytes;
  if (used_ == 0 && input_->is_unfinished()) return {};
  if (used_ == 0) {
    throw FormatError(input_->name(), input_->offset(),
                      "the capture ends inside a record: expected " +
                          std::to_string(kBusRecordBytes) + " bytes, found " +
                          std::to_string(block.size()));
  }
  return block.first(used_);
}

}  // namespace citcat
