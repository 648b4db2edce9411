#include "replay/verify/verifier.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "events/machine/cpu_traits.h"
#include "replay/machine/code_place.h"
#include "replay/machine/string_elements.h"
#include "replay/machine/table_search.h"

namespace citcat {

namespace {

/// What OrderOfStores tells instructions apart by.
std::uint64_t identity_of(const DecodedInstruction& info) {
  return std::uint64_t{info.opcode_map} << 24 | std::uint64_t{info.opcode} << 16 |
         std::uint64_t{info.reg_field} << 8 | info.operand_bytes;
}

std::uint64_t identity_of(const DeliveredEvent& event) {
  constexpr std::uint64_t kDelivery = std::uint64_t{1} << 32;
  return kDelivery | static_cast<std::uint64_t>(event.kind);
}

}  // namespace

Verifier::Verifier(const Recording& recording, std::unique_ptr<EvidenceReader> evidence,
                   const VerifierOptions& options)
    : comparison_(recording, std::move(evidence), options) {}

Verifier::~Verifier() = default;

Verifier::Checkpoint Verifier::checkpoint() const {
  Checkpoint c{comparison_, comparison_.final_memory.progress(), comparison_.external.seen(), {}};
  if (comparison_.reads != nullptr) {
    c.reads = std::make_shared<const ReadMatcher::Checkpoint>(comparison_.reads->checkpoint());
  }
  return c;
}

void Verifier::restore(const Checkpoint& checkpoint) {
  static_cast<ComparisonProgress&>(comparison_) = checkpoint.progress;
  comparison_.final_memory.restore(checkpoint.final_memory);
  comparison_.external.restore(checkpoint.external_changes);
  if (comparison_.reads != nullptr) comparison_.reads->restore(*checkpoint.reads);
}

void Verifier::begin_part(std::size_t external_writes) {
  Comparison& c = comparison_;
  const Position now = c.machine->position();
  c.external.restore(external_writes);
  address_space(c.machine->engine().address_space(), now);
  // A processor may have lost what it held of a page whose walk was before.
  for (const PhysAddr at : tables_of_held_pages(*c.machine)) c.reads->table(at);
  if (c.look_ahead()) c.reads->fetched_before(c.ahead->fetched_before());
  c.pull_through(now);
  c.check_lines(now);
}

void Verifier::end_part() {
  Comparison& c = comparison_;
  const Position now = c.machine->position();
  c.follow_reads(now);
  c.end(now);
  const BusTransaction* const read = c.reads->due();
  const BusTransaction* const left = c.lines.empty() ? nullptr : &c.lines[0].t;
  for (const BusTransaction* const t : {read, left}) {
    if (t != nullptr && is_left_at(*t, now))
      stop_with({"is left at the end of a part", *t, ""}, now);
  }
}

bool Verifier::end_last_part() {
  Comparison& c = comparison_;
  if (c.write_back) return true;
  if (c.look_ahead() || !c.writes.empty()) return false;
  c.final_memory.take_model(c.ahead->memory_at_end());
  return true;
}

ReplayReport Verifier::finish(ReplayReport report) {
  if (report.end != ReplayReport::End::complete) return report;
  try {
    finish(comparison_.machine->position());
    // Where all that the bus shows was made, what the replay lacks comes behind the end.
    if (!report.cut || comparison_.made_all()) return report;
    report.divergence = std::exchange(report.cut, std::nullopt);
  } catch (const ReplayStopped& stop) {
    report.divergence =
        report.cut ? std::exchange(report.cut, std::nullopt) : make_divergence(stop);
  }
  report.end = ReplayReport::End::diverged;
  return report;
}

std::optional<std::uint64_t> Verifier::first_missing() const {
  std::optional<std::uint64_t> first;
  if (const BusTransaction* write = comparison_.writes.first_missing()) first = write->index;
  if (const BusTransaction* port = comparison_.ports.due()) {
    first = std::min(first.value_or(port->index), port->index);
  }
  return first;
}

FinalMemory Verifier::compare_final(const MemoryImage* captured) const {
  return comparison_.final_memory.compare(
      comparison_.memory(), captured,
      [this](PhysAddr at, std::uint8_t byte) { return comparison_.may_differ(at, byte); });
}

// ---------------------------------------------------------------------------------------------
// Writes

void Verifier::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                     Position now) {
  Comparison& c = comparison_;
  if (c.beyond && !c.write_back) return c.machine->control().stop_before(now);
  std::optional<FlagImages::Image> overwritten;
  if (c.plain) overwritten = note_image(a, bytes);
  if (c.write_back && blocks_.expects_nothing(now)) return;
  if (c.orders_reads && c.machine->in_floating_point()) {
    c.ordered_reads.leave_to_coprocessor(c.memory().captured(a));
  }
  if (c.reads != nullptr && !c.beyond) {
    c.begin_reads(now);
    c.reads->stored(a, static_cast<std::uint32_t>(bytes.size()), c.memory());
  }
  if (c.write_back) c.pull_through(now);
  if (overwritten && kind == AccessKind::system) {
    c.lines.excuse({a, 4, overwritten->value, overwritten->undefined}, now);
  }
  if (c.plain && !c.lines.empty()) {
    const PhysAddr at = c.memory().captured(a);
    c.lines.overwrite(at, static_cast<std::uint32_t>(bytes.size()), now);
  }
  const std::uint64_t undefined = undefined_bits(bytes);
  if (!c.beyond) c.stores_order.begin(kind, a, static_cast<std::uint32_t>(bytes.size()));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const PhysAddr at = c.memory().captured(a.plus32(static_cast<std::uint32_t>(i)));
    auto bits = static_cast<std::uint8_t>(undefined >> (i % 8 * 8));
    if (is_visible(at, now)) {
      match_byte(at, {bytes[i], bits}, now);
    } else if (c.looks_closely(now)) {
      if (bits == 0) bits = c.undefined.copied(i, now);
      stored_in_cache(at, {bytes[i], bits}, now);
    }
  }
  if (c.write_back && !c.lines.empty()) c.check_lines(now);
  if (c.lines.has_windows()) check_windows(a, bytes.size(), now);
  c.writes.drop_made();
  if (c.times != nullptr && kind == AccessKind::system) c.times->forget();
}

/// What is told by this completes what the stores since belong to.
void Verifier::complete_stores(std::uint64_t identity, Position now) {
  Comparison& c = comparison_;
  if (!c.stores_order.is_open() || c.beyond) return;
  Comparison::require(c.stores_order.complete(identity, now), now);
}

/// With a write-back cache the bus shows only what is not cacheable; captures mark those.
bool Verifier::is_visible(PhysAddr a, Position now) const {
  const WriteMatcher& writes = comparison_.writes;
  return !comparison_.write_back || (!writes.empty() && writes.covers(a, now));
}

void Verifier::stored_in_cache(PhysAddr a, Stored byte, Position now) {
  Comparison& c = comparison_;
  if (!c.lines.empty() && !c.undefined.empty()) {
    const UndefinedBits::Byte* const old = c.undefined.find(a);
    if (old != nullptr) c.lines.excuse({a, 1, old->value, old->bits}, now);
  }
  if (!c.plain) c.final_memory.stored(a);
  c.undefined.stored(a, {byte.undefined, byte.value});
}

void Verifier::match_byte(PhysAddr a, Stored byte, Position now) {
  Comparison& c = comparison_;
  WriteMatcher::Pending* const pending = c.writes.find(a, now, [&] {
    return !c.cursor.is_beyond(now) && c.pull() && c.held() <= Comparison::kMaxHeld;
  });
  if (pending == nullptr) {
    const bool cut_off = c.cursor.ends_within(now) && c.writes.all_made();
    if (!cut_off && !c.is_used_up()) stop_with(c.writes.unexpected(a, byte.value), now);
    c.final_memory.stored_beyond_end(a);
    return;
  }
  if (c.writes.out_of_order() && c.machine->knows_order_of_stores()) {
    Comparison::require(c.writes.observe_order(*pending, a, byte.value), now);
  }
  const BusTransaction& t = pending->t;
  const bool equal = t.data[a.minus32(t.address)] == byte.value;
  if (!equal && !c.adopt(*pending, a, byte.value, byte.undefined)) {
    stop_with({"the replay writes another value than the processor did", t,
               memory_text(c.memory(), t.address, t.size)},
              now);
  }
  if (t.has(kPositionKnown) && !c.beyond && !c.is_waived(t.index)) {
    Comparison::require(c.stores_order.made(t), now);
  }
  if (WriteMatcher::observe(*pending, a)) c.write_agreed(t);
}

/// Checks the lines without counts that these bytes may be part of.
void Verifier::check_windows(PhysAddr a, std::size_t size, Position now) {
  const Memory& memory = comparison_.memory();
  const PhysAddr last_byte = a.plus32(static_cast<std::uint32_t>(size - 1));
  const std::uint64_t last = window_of(memory.captured(last_byte));
  for (std::uint64_t w = window_of(memory.captured(a)); w <= last; ++w) {
    if (comparison_.check_window(w)) comparison_.progress_at = now.instruction;
  }
}

/// The instruction in progress may store results that differ from one model of a processor to the
/// next.
bool Verifier::holds_specific_results() const {
  const Machine& machine = *comparison_.machine;
  return machine.model_specific_results() != 0 && machine.in_floating_point();
}

/// Which bits of each eight bytes of a store have values that no manual defines.
std::uint64_t Verifier::undefined_bits(std::span<const std::uint8_t> bytes) {
  const Machine& machine = *comparison_.machine;
  if (holds_specific_results()) return ~std::uint64_t{0};
  if (const std::uint64_t bits = machine.reserved_bits(); bits != 0) return bits << 32 | bits;
  if (bytes.size() == 8 && !in_long_mode(machine.engine())) return 0;
  // Its microcode tells all of its flags.
  if (cpu_traits(comparison_.recording.initial.model).has_microcode_8086) return 0;
  return comparison_.undefined.in_image(bytes, [&] { return machine.engine().eflags(); });
}

// ---------------------------------------------------------------------------------------------
// Flags

void Verifier::follow_untold_flags() {
  if (plain()) comparison_.undefined.completed(comparison_.machine->take_untold_flags());
}

/// For a plain comparison: remembers a store that may be an image of EFLAGS, and returns the image
/// that it overwrites. One that nobody tells is not remembered, nor one that is not aligned.
std::optional<FlagImages::Image> Verifier::note_image(PhysAddr a,
                                                      std::span<const std::uint8_t> bytes) {
  if (holds_specific_results()) {
    note_specific_results(a, bytes);
    return std::nullopt;
  }
  const bool wide = bytes.size() == 8 && in_long_mode(comparison_.machine->engine());
  const bool plain_store = (bytes.size() == 4 || wide) && a.offset_in(4) == 0;
  if (!plain_store || !comparison_.write_back) return std::nullopt;
  follow_untold_flags();
  FlagImages::Image image{0, static_cast<std::uint32_t>(undefined_bits(bytes))};
  std::memcpy(&image.value, bytes.data(), sizeof image.value);
  if (wide) comparison_.images.stored(a.plus32(4), {});
  return comparison_.images.stored(a, image);
}

/// For a plain comparison: words that may hold such results are remembered as images of which no
/// bit is defined.
void Verifier::note_specific_results(PhysAddr a, std::span<const std::uint8_t> bytes) {
  if (!comparison_.write_back || a.offset_in(4) != 0 || bytes.size() % 4 != 0) return;
  for (std::uint32_t i = 0; i < bytes.size(); i += 4) {
    FlagImages::Image word{0, ~0u};
    std::memcpy(&word.value, &bytes[i], sizeof word.value);
    comparison_.images.stored(a.plus32(i), word);
  }
}

void Verifier::copied(PhysAddr from, PhysAddr to, std::uint32_t size) {
  comparison_.images.copied(from, to, size);
}

// ---------------------------------------------------------------------------------------------
// Reads

void Verifier::fetch(PhysAddr a, std::uint32_t size, Position now) {
  Comparison& c = comparison_;
  if (c.reads == nullptr || c.beyond || blocks_.expects_nothing(now)) return;
  c.begin_reads(now);
  c.reads->fetched(a, size, c.memory());
}

void Verifier::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  Comparison& c = comparison_;
  if (c.orders_reads && !c.beyond) match_read(a, size, kind, now);
  if (c.reads == nullptr || c.beyond) return;
  if (blocks_.expects_nothing(now)) {
    if (kind == AccessKind::walk) c.reads->table(c.memory().captured(a));
    return;
  }
  if (!c.undefined.empty() && kind == AccessKind::data && c.machine->in_string_copy()) {
    c.undefined.copying(c.memory().captured(a), now);
  }
  c.begin_reads(now);
  c.reads->read(a, size, kind, c.memory());
}

/// In the order of the bus. Where the evidence ends, so does what is compared.
void Verifier::match_read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  Comparison& c = comparison_;
  OrderedReads::Access access{c.memory().captured(a), size};
  // In processors whose reads are compared this way, all floating point is the coprocessor's.
  if (kind == AccessKind::data && c.machine->in_floating_point()) {
    return c.ordered_reads.leave_to_coprocessor(access.address);
  }
  while (!access.complete()) {
    while (c.ordered_reads.empty()) {
      if (c.held() > Comparison::kMaxHeld || !c.pull()) return;
    }
    Comparison::require(c.ordered_reads.observe(access), now);
  }
  c.result.totals.reads = c.ordered_reads.compared();
}

void Verifier::address_space(AddressSpaceId cr3, Position) {
  if (comparison_.reads == nullptr) return;
  comparison_.reads->address_space(cr3);
  // A processor may look into a directory where the replay still holds what is mapped globally.
  for (const PhysAddr at : comparison_.machine->mmu().page_directories()) {
    comparison_.reads->table(comparison_.memory().captured(at));
  }
}

// ---------------------------------------------------------------------------------------------
// Writes of other bus masters, which reads show

void Verifier::check_bit_change(PhysAddr a, const ExternalChange& change, Position now) {
  Comparison& c = comparison_;
  constexpr std::uint32_t kPaging = 1u << 31;
  const bool table_entry = change.marks_table_entry && (c.machine->engine().cr(0) & kPaging) != 0;
  const std::vector<std::uint64_t>& told = c.policy.told_changes;
  if (std::binary_search(told.begin(), told.end(), change.transaction)) return;
  if (!c.policy.bit_changes && !c.is_waived(change.transaction) && !table_entry &&
      c.external.stands_alone(a)) {
    char at[16];
    std::snprintf(at, sizeof at, "%08" PRIx64, a.value);
    throw ReplayStopped{now,
                        "a read shows memory with one bit changed, and nothing around it that "
                        "another bus master wrote",
                        change.transaction, memory_text(c.memory(), a, 4) + " at " + at,
                        "one bit changed: captured wrongly, or by a device (accept with "
                        "--accept-bit-changes)"};
  }
  if (!c.external.is_memory(a)) return;  // a device's register
  VerifyTotals& totals = c.result.totals;
  if (totals.single_bit_changes++ == 0) totals.first_single_bit_change = change.transaction;
}

void Verifier::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  Comparison& c = comparison_;
  const ExternalChange change = c.external.observe(a, bytes, c.memory());
  if (change.bits == 1) check_bit_change(a, change, now);
  if (change.bits != 0 || !c.write_back || c.reads == nullptr) return;
  // Memory already holds what "another" master wrote: the replay's own stores came back, and the
  // cache never showed that it gave them up.
  if (!c.plain && !c.final_memory.is_unconfirmed(a)) return;
  BusTransaction t;
  t.index = change.transaction;
  t.op = BusOp::data_read;
  t.address = a;
  t.size = static_cast<std::uint8_t>(std::min<std::size_t>(bytes.size(), kMaxTransactionBytes));
  stop_with({"memory shows what the processor wrote, and no write-back of it was captured", t,
             memory_text(c.memory(), a, t.size)},
            now);
}

// ---------------------------------------------------------------------------------------------
// Instructions and interrupts

void Verifier::delivered(const DeliveredEvent& event, Position now) {
  Comparison& c = comparison_;
  follow_untold_flags();
  c.images.forget_lost(c.memory());
  c.undefined.image_follows(event.eflags);
  constexpr unsigned kPageFault = 14;
  if (c.reads != nullptr && !c.beyond && event.kind == DeliveredEvent::Kind::exception &&
      event.vector == kPageFault) {
    c.begin_reads(now);
    c.reads->page_fault(LinearAddr{event.cr2});
  }
  blocks_.interrupted(now);
  complete_stores(identity_of(event), now);
  const bool outside = event.kind == DeliveredEvent::Kind::external;
  if (!outside) return;
  if (!c.cursor.counted()) {
    c.pull_through(now);
    c.settle_windows(now);
  }
  ++c.interrupts_delivered;
  if (c.times != nullptr) c.times->interrupted(now);
}

void Verifier::instruction(const ExecutedInstruction& e, Position now) {
  Comparison& c = comparison_;
  follow_untold_flags();
  if (e.info->kind == InstructionClass::syscall) {
    c.undefined.image_follows(c.machine->engine().eflags());
  }
  const bool loads = e.info->kind == InstructionClass::iret ||
                     e.info->kind == InstructionClass::popf ||
                     e.info->kind == InstructionClass::sysret;
  // Without a write-back cache images have been compared, and adopted, when they were stored.
  c.undefined.completed(*e.info, c.machine->engine().gpr(kEcx), loads && c.write_back);
  complete_stores(identity_of(*e.info), now);
  if (blocks_.expects_nothing(now) || c.beyond) return;
  if (c.is_over(now)) return c.machine->control().stop_before(now);
  if (c.recording.totals.instruction_starts != 0) {
    check_start(e, now);
  } else {
    Comparison::require(c.starts.observe(e, now, c.result), now);
  }
  c.pull_through(now);
  const bool repeated = e.info->is_repeated();
  if (!c.lines.empty()) {
    c.check_lines(now);
    c.expire_lines(now, repeated);
  }
  if (!repeated) Comparison::require(c.writes.overdue(now), now);
  if (!c.write_back) return;
  // State before what comes next: lines given up by it, before it changes them.
  const Position next = repeated && repeats_again(*e.info, now)
                            ? Position{now.instruction, now.iteration + 1}
                            : Position{now.instruction + 1, 0};
  c.pull_through(next);
  if (!c.lines.empty()) c.check_lines(next);
}

/// True only where iteration `now` of a REP is not the last one. A copy of a megabyte gives up
/// thousands of lines, which must not all be looked for after each iteration. After an event
/// nothing is known: iterations are counted from zero again.
bool Verifier::repeats_again(const DecodedInstruction& info, Position now) const {
  if (compares_strings(info) || now.instruction == comparison_.interrupted) return false;
  const std::uint32_t count = comparison_.machine->engine().gpr(kEcx);
  return (info.address_bits == 16 ? count & 0xffff : count) > 1;
}

/// For pins that report every instruction. They report a REP once, however often it iterates.
void Verifier::check_start(const ExecutedInstruction& e, Position now) {
  const DecodedInstruction& info = *e.info;
  if (info.is_repeated() && now.iteration != 0) return;
  Comparison& c = comparison_;
  const auto expect = [&](std::uint32_t offset, bool prefix) {
    while (c.starts.empty()) {
      if (!c.pull()) return;
      if (c.held() > Comparison::kMaxHeld) break;
    }
    if (c.starts.empty()) return;
    if (c.from_elsewhere == c.starts.due().index) {
      stop_with({FetchOrder::kReason, c.starts.due(), ""}, now);
    }
    if (c.times != nullptr) c.times->started(c.starts.due(), now);
    const PhysAddr at = c.memory().captured(e.physical.plus32(offset));
    const std::span<const std::uint8_t> bytes{info.bytes.data() + offset, info.length - offset};
    Comparison::require(c.starts.observe({at, bytes, prefix}, c.result), now);
  };
  for (std::uint32_t i = 0; i < info.prefix_bytes; ++i) expect(i, true);
  expect(info.prefix_bytes, false);
}

// ---------------------------------------------------------------------------------------------
// Ports

/// Before the first part of an access. False where the evidence ends before it.
bool Verifier::begin_port(Position now) {
  Comparison& c = comparison_;
  if (c.beyond || c.is_over(now)) return false;
  if (c.cursor.counted()) return true;
  c.pull_through(now);
  c.settle_windows(now);
  c.progress_at = now.instruction;
  return true;
}

/// Has the next transaction of a port come, where there is one. `begun`: it is another part of an
/// access. False where the capture ends after the part that agreed last.
bool Verifier::expect_port(bool begun) {
  Comparison& c = comparison_;
  while (c.ports.waiting() == 0) {
    if (!c.pull()) break;
    if (c.held() + c.lines.waiting() > Comparison::kMaxHeld) break;
  }
  const bool ends =
      c.ports.waiting() == 0 && c.cursor.at_end() && c.cursor.last_index() == c.result.last_agreed;
  return !(begun && ends);
}

void Verifier::match_port(const PortUse& use, Position now) {
  PortMatcher& ports = comparison_.ports;
  PortAccess access = ports.begin(use);
  while (!access.complete()) {
    const bool begun = access.begun();
    if ((!begun && !begin_port(now)) || !expect_port(begun)) {
      return comparison_.machine->control().stop_before(now);
    }
    if (comparison_.times != nullptr && ports.due() != nullptr) {
      comparison_.times->agreed(*ports.due(), now);
    }
    Comparison::require(ports.observe(access, use, now, comparison_.result), now);
  }
}

void Verifier::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  match_port({BusOp::io_read, port, size, value}, now);
}

void Verifier::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  match_port({BusOp::io_write, port, size, value}, now);
}

// ---------------------------------------------------------------------------------------------
// Special cycles

void Verifier::check_special(BusOp op, Position now) {
  Comparison& c = comparison_;
  if (c.beyond) return c.machine->control().stop_before(now);
  while (c.specials.empty()) {
    if (!c.pull()) return;
    if (c.held() + c.lines.waiting() > Comparison::kMaxHeld) return;
    if (c.cursor.is_beyond(now)) break;
  }
  Comparison::require(c.specials.observe(op, c.result), now);
}

void Verifier::halted(Position now) { check_special(BusOp::halt, now); }
void Verifier::cache_flushed(bool, Position now) { check_special(BusOp::flush, now); }
void Verifier::shutdown(Position now) { check_special(BusOp::shutdown, now); }

}  // namespace citcat
