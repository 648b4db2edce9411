#include "replay/trace/record_sink.h"

namespace citcat {

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

void RecordSink::add_event(KtNote::Kind kind, Position now, std::uint32_t where, std::uint32_t size,
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
  KtRecord record;
  record.instruction = kt_instruction(e, options_);
  add(record, now, code_bits(*e.info));
  records.back().clock = clock;
}

void RecordSink::block(const ExecutedBlock& block, Position first) {
  const bool before = first.instruction + block.count() <= range_.from().instruction;
  if (range_.begun() || !before) Observer::block(block, first);
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
  add_event(KtNote::Kind::external_write, now, at.u32(), static_cast<std::uint32_t>(bytes.size()));
}

void RecordSink::halted(Position now) { add_event(KtNote::Kind::halted, now); }

void RecordSink::shutdown(Position now) { add_event(KtNote::Kind::shutdown, now); }

void RecordSink::address_space(std::uint32_t cr3, Position now) {
  if (options_.process_records && wanted(now)) add(process_record(cr3), now, 0);
}

void RecordSink::mapping(LinearAddr page, PhysAddr frame, Position now) {
  if (!options_.process_records) return;
  // What is wanted may begin with this one, which the TLB has by now.
  const bool begins = !range_.begun() && machine_ != nullptr;
  if (wanted(now) && !begins) add(translation_record(page, frame), now, 0);
}

}  // namespace citcat
