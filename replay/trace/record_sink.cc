#include "replay/trace/record_sink.h"

#include <cstddef>
#include <memory>
#include <utility>

namespace citcat {

namespace {

/// The records of a block, complete but for positions and the addresses of what it accesses.
class BlockRecords final : public BlockNote {
 public:
  explicit BlockRecords(std::vector<TraceRecord> records) : records_(std::move(records)) {}

  void append_to(std::vector<TraceRecord>& all, const LinearAddr* addresses, Position first) const {
    const std::size_t before = all.size();
    all.insert(all.end(), records_.begin(), records_.end());
    for (std::size_t i = 0; i < records_.size(); ++i) {
      TraceRecord& added = all[before + i];
      added.position = {first.instruction + i, 0};
      KtInstruction& instruction = added.record.instruction;
      for (std::size_t e = 0; e < instruction.address_count; ++e) {
        instruction.set_wide_address(e, (addresses++)->value);
      }
    }
  }

 private:
  std::vector<TraceRecord> records_;
};

}  // namespace

void RecordSink::watch(const Machine& machine) {
  if (!options_.wide) require_narrow_addresses(machine);
  machine_ = &machine;
}

void RecordSink::begin_at(Position from) {
  records.clear();
  range_ = TraceRange(from, TraceRange().to());
}

/// What is wanted begins with the process and its translations.
bool RecordSink::wanted(Position now) {
  const bool begun = range_.begun();
  if (!range_.has(now)) return false;
  if (begun || !options_.process_records || machine_ == nullptr) return true;
  for (const KtRecord& record : address_space_records(*machine_)) add(record, now, 0);
  return true;
}

void RecordSink::add(const KtRecord& record, Position now, std::uint8_t bits) {
  TraceRecord& added = records.emplace_back();
  added.record = record;
  added.position = now;
  added.bits = bits;
}

void RecordSink::add_event(KtNote::Kind kind, Position now, std::uint64_t where, std::uint32_t size,
                           std::uint32_t value) {
  if (!events_ || !wanted(now)) return;
  TraceRecord& added = records.emplace_back();
  added.position = now;
  added.is_event = true;
  added.event.kind = kind;
  added.event.place = {now.instruction, now.iteration, 0};
  added.event.where = where;
  added.event.size = size;
  added.event.value = value;
  if (times_ != nullptr) added.clock = times_->at(now);
}

void RecordSink::instruction(const ExecutedInstruction& e, Position now) {
  const std::optional<std::uint64_t> clock =
      times_ != nullptr ? times_->take(now) : std::optional<std::uint64_t>();
  if (!wanted(now)) return;
  add(e, now);
  records.back().clock = clock;
}

void RecordSink::add(const ExecutedInstruction& e, Position now) {
  KtRecord record;
  record.instruction = kt_instruction(e, options_);
  add(record, now, code_bits(*e.info));
}

void RecordSink::ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) {
  for (const ExecutedBlock& block : blocks) {
    add(block, first);
    first.instruction += block.count();
  }
}

/// What has begun goes on to the end, so that of a block nothing but its addresses is to be looked
/// at then. Clocks are asked for instruction by instruction.
void RecordSink::add(const ExecutedBlock& block, Position first) {
  if (!range_.begun() && first.instruction + block.count() <= range_.from().instruction) return;
  if (!range_.begun() || times_ != nullptr || block.note() == nullptr) {
    return Observer::ran({&block, 1}, first, block.count());
  }
  if (*block.note() != nullptr) {
    static_cast<const BlockRecords&>(**block.note()).append_to(records, block.addresses(), first);
    return;
  }
  const std::size_t before = records.size();
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    add(block.instruction(i), {first.instruction + i, 0});
  }
  *block.note() = std::make_unique<BlockRecords>(
      std::vector(records.begin() + static_cast<std::ptrdiff_t>(before), records.end()));
}

void RecordSink::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                         Position now) {
  add_event(KtNote::Kind::port_read, now, port, size, value);
}

void RecordSink::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                          Position now) {
  add_event(KtNote::Kind::port_write, now, port, size, value);
}

void RecordSink::delivered(const DeliveredEvent& event, Position now) {
  add_event(note_kind(event.kind), now, event.vector, 0, event.error_code);
  if (times_ != nullptr) times_->take(now);
}

void RecordSink::external_write(PhysAddr at, std::span<const std::uint8_t> bytes, Position now) {
  add_event(KtNote::Kind::external_write, now, at.value, static_cast<std::uint32_t>(bytes.size()));
}

void RecordSink::translation_dropped(LinearAddr page, Position now) {
  add_event(KtNote::Kind::translation_dropped, now, page.page());
}

void RecordSink::halted(Position now) { add_event(KtNote::Kind::halted, now); }

void RecordSink::shutdown(Position now) { add_event(KtNote::Kind::shutdown, now); }

void RecordSink::address_space(AddressSpaceId cr3, Position now) {
  if (options_.process_records && wanted(now)) add(process_record(cr3), now, 0);
}

void RecordSink::mapping(LinearAddr page, PhysAddr frame, Position now) {
  if (!options_.process_records) return;
  // What is wanted may begin with this one, which the TLB has by now.
  const bool begins = !range_.begun() && machine_ != nullptr;
  if (wanted(now) && !begins) add(translation_record(page, frame), now, 0);
}

}  // namespace citcat
