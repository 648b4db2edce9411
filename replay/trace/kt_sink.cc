#include "replay/trace/kt_sink.h"

#include <string>
#include <utility>

#include "formats/io/error.h"
#include "replay/machine/machine.h"

namespace citcat {

namespace {

/// What comes after it is code of 64-bit mode again, unless an event is told.
bool stays_in_64_bit_mode(const DecodedInstruction& info) {
  using Kind = InstructionClass;
  const bool plain = info.kind == Kind::plain || (info.kind >= Kind::jcc && info.kind <= Kind::ret);
  return info.bits64 && plain;
}

}  // namespace

KtNote::Kind note_kind(DeliveredEvent::Kind kind) {
  switch (kind) {
    case DeliveredEvent::Kind::exception:
      return KtNote::Kind::exception;
    case DeliveredEvent::Kind::external:
      return KtNote::Kind::external;
    case DeliveredEvent::Kind::software:
      return KtNote::Kind::software;
    case DeliveredEvent::Kind::nmi:
      return KtNote::Kind::nmi;
    case DeliveredEvent::Kind::smi:
      return KtNote::Kind::smi;
  }
  return KtNote::Kind::exception;
}

KtInstruction kt_instruction(const ExecutedInstruction& e, const KtOptions& options) {
  KtInstruction record;
  record.eip = kt_address(e, options);
  record.code = e.info->bytes;
  record.size = e.info->length;
  record.address_count = e.ea_count;
  for (std::size_t i = 0; i < e.ea_count; ++i) record.set_wide_address(i, e.ea[i].value);
  // In 64-bit mode an offset in CS is the address.
  if (e.info->bits64) record.set_wide_eip(e.linear.value);
  return record;
}

KtSink::KtSink(KtWriter& writer, const KtOptions& options)
    : writer_(writer),
      options_(options),
      range_({options.from, options.from_iteration}, {options.to, options.to_iteration}),
      notes_(writer.keeps_notes()),
      preamble_due_(options.begins_trace),
      blocks_to_(options.to) {}

void require_narrow_addresses(const Machine& machine) {
  const CpuModel model = machine.model();
  if (!cpu_traits(model).has_long_mode) return;
  throw UsageError("recordings of the processor " + std::string(cpu_model_name(model)) +
                   " can be replayed and verified, but this output has only addresses of 32 bits "
                   "(docs/long-mode.md says what can be done with them)");
}

void KtSink::watch(const Machine& machine) {
  if (!writer_.is_wide()) require_narrow_addresses(machine);
  machine_ = &machine;
}

void KtSink::set_range(Position from, Position to, bool begins) {
  range_ = TraceRange(from, to);
  blocks_to_ = to.instruction;
  preamble_due_ = begins;
  displaced_ = true;
  repeats_ = false;
  bits_ = 0;
  look_at_next();
}

bool KtSink::wanted(Position now) {
  if (!range_.has(now)) return false;
  if (preamble_due_) [[unlikely]]
    begin();
  return true;
}

/// What the whole trace begins with.
void KtSink::begin() {
  preamble_due_ = false;
  if (machine_ == nullptr || !options_.process_records) return;
  for (const KtRecord& r : address_space_records(*machine_)) {
    if (r.kind == KtRecord::Kind::process) {
      writer_.process(r.pid);
    } else {
      writer_.translation(r.frame, r.wide_page());
    }
  }
}

/// Notes where the next record is if the last one does not say: see KtCounter.
void KtSink::look_before(const DecodedInstruction& info, std::uint32_t eip, unsigned addresses,
                         Position now) {
  if (!look_) return;
  look_ = false;
  blocks_from_ = 0;
  if (!notes_) return;
  KtPlace here{now.instruction, now.iteration, code_bits(info)};
  if (std::exchange(repeats_, false)) {
    const KtPlace suggested =
        repeat_.next(eip, {info.bytes.data(), info.length}, addresses, info.bits64);
    displaced_ |= !suggested.same_position(here);
  }
  if (here.bits != bits_ || displaced_) {
    KtNote note;
    note.place = here;
    writer_.note(note);
  }
  bits_ = here.bits;
  displaced_ = false;
}

/// After an instruction that was told alone: it may have gone on in another segment, or be an
/// iteration of many.
void KtSink::look_after(const DecodedInstruction& info, std::uint32_t eip, unsigned addresses,
                        Position now) {
  if (!notes_ || stays_in_64_bit_mode(info)) return;
  look_at_next();
  repeats_ = info.is_repeated() && addresses != 0;
  if (!repeats_) return;
  repeat_.set({now.instruction, now.iteration, 0});
  repeat_.next(eip, {info.bytes.data(), info.length}, addresses, info.bits64);
}

/// Where a piece ends there may end a segment, too, and the next one is to be found by its place.
void KtSink::make_room(Position now) {
  if (writer_.has_room()) [[likely]]
    return;
  if (notes_) {
    KtNote note;
    note.place = {now.instruction, now.iteration, bits_};
    note.implied = true;
    writer_.note(note);
  }
  writer_.flush();
}

void KtSink::write_wide(const ExecutedInstruction& e) {
  KtInstruction record = kt_instruction(e, options_);
  record.bits = code_bits(*e.info);
  writer_.instruction(record);
}

void KtSink::instruction(const ExecutedInstruction& e, Position now) {
  if (!wanted(now)) return;
  const bool nothing_done = e.info->is_repeated() && e.ea_count == 0 && e.info->ea_count != 0;
  if (nothing_done && !options_.zero_count_repeats) {
    displaced_ = true;
    look_at_next();
    return;
  }
  const std::uint32_t eip = kt_address(e, options_);
  look_before(*e.info, eip, e.ea_count, now);
  make_room(now);
  if (writer_.is_wide()) {
    write_wide(e);
  } else {
    writer_.instruction(record(e), e.ea[0].low32(), e.ea[1].low32());
  }
  look_after(*e.info, eip, e.ea_count, now);
}

void KtSink::iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                        Position now) {
  if (count == 0) return;
  const Position last{now.instruction, now.iteration + count - 1};
  if (!range_.begun() && last < range_.from()) return;
  const bool begins_among = !range_.begun() && now < range_.from();
  const bool ends_among = now < range_.to() && last >= range_.to();
  if (begins_among || ends_among || writer_.is_wide()) {
    Observer::iterations(first, count, step, now);
    return;
  }
  if (!wanted(now)) return;
  const std::uint32_t eip = kt_address(first, options_);
  look_before(*first.info, eip, first.ea_count, now);
  const KtTemplate all = record(first);
  for (std::uint32_t i = 0; i < count; ++i) {
    make_room({now.instruction, now.iteration + i});
    writer_.instruction(all, first.ea[0].low32() + i * step, first.ea[1].low32() + i * step);
  }
  look_after(*first.info, eip, first.ea_count, last);
}

/// Where the next record is as the last one suggests, within the part that is wanted.
RecordRoom KtSink::record_room(Position now) {
  if (now.instruction < blocks_from_ || now.instruction >= blocks_to_) return {};
  make_room(now);
  return {writer_.next(), writer_.room_left(), blocks_to_};
}

/// False where `block` can have none.
bool KtSink::make_image(const ExecutedBlock& block) {
  // Records of 64 bits come by recorded(), where nothing else is told.
  if (block.note() == nullptr || writer_.is_wide()) return false;
  *block.note() = KtImage::make(block, options_.offsets);
  return *block.note() != nullptr;
}

void KtSink::ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) {
  for (const ExecutedBlock& block : blocks) {
    write(block, first);
    first.instruction += block.count();
  }
}

// Nothing is called here in the ordinary case, so that no registers need be saved.
inline void KtSink::write(const ExecutedBlock& block, Position first) {
  if (has_image(block) && wanted(block, first) && writer_.has_room()) [[likely]]
    return write_image(block);
  write_with_care(block, first);
}

void KtSink::write_with_care(const ExecutedBlock& block, Position first) {
  const Position end{first.instruction + block.count(), 0};
  if (!range_.begun() && end <= range_.from()) return;
  const bool straddles = (!range_.begun() && first < range_.from()) || end > range_.to();
  if (straddles || !(has_image(block) || make_image(block))) {
    Observer::ran({&block, 1}, first, block.count());
    return;
  }
  if (!wanted(first)) return;
  if (look_) {
    const ExecutedInstruction e = block.instruction(0);
    look_before(*e.info, kt_address(e, options_), e.ea_count, first);
  }
  make_room(first);
  write_image(block);
}

void KtSink::note(KtNote::Kind kind, Position now, std::uint64_t where, std::uint32_t size,
                  std::uint32_t value) {
  if (!notes_ || !wanted(now)) return;
  KtNote note;
  note.kind = kind;
  note.place = {now.instruction, now.iteration, 0};
  note.where = where;
  note.size = size;
  note.value = value;
  writer_.note(note);
}

void KtSink::end(std::uint64_t completed) {
  if (!repeats_ || repeat_.place().instruction >= completed) return;
  KtNote note;
  note.place = {repeat_.place().instruction + 1, 0, bits_};
  writer_.note(note);
}

void KtSink::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  note(KtNote::Kind::port_read, now, port, size, value);
}

void KtSink::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  note(KtNote::Kind::port_write, now, port, size, value);
}

void KtSink::delivered(const DeliveredEvent& event, Position now) {
  if (!notes_) return;
  note(note_kind(event.kind), now, event.vector, 0, event.error_code);
  look_at_next();
}

void KtSink::external_write(PhysAddr at, std::uint32_t size, Position now) {
  note(KtNote::Kind::external_write, now, at.value, size);
}

void KtSink::translation_dropped(LinearAddr page, Position now) {
  note(KtNote::Kind::translation_dropped, now, page.page());
}

void KtSink::halted(Position now) { note(KtNote::Kind::halted, now); }

void KtSink::shutdown(Position now) { note(KtNote::Kind::shutdown, now); }

void KtSink::address_space(AddressSpaceId cr3, Position now) {
  if (options_.process_records && wanted(now)) writer_.process(kt_process(cr3));
}

void KtSink::mapping(LinearAddr page, PhysAddr frame, Position now) {
  if (!options_.process_records) return;
  // The trace may begin with this one, which the TLB has by now.
  const bool begins = preamble_due_ && machine_ != nullptr;
  if (wanted(now) && !(begins && !preamble_due_)) writer_.translation(kt_frame(frame), page.value);
}

}  // namespace citcat
