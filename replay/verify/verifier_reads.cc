// Reads, and the writes of other bus masters, which reads show.

#include <algorithm>
#include <bit>
#include <cstdio>

#include "replay/verify/verifier.h"

namespace citcat {

/// Before the first access of instruction `now`: what the one before has read is complete.
void Verifier::follow_reads(Position now) {
  const std::uint64_t before = reads_->instruction();
  const bool waits =
      !ahead_ || !ahead_->has(kPositionKnown) || ahead_->position.instruction < now.instruction;
  const auto reach = [&](std::uint64_t instruction) {
    while (!has_position_beyond({instruction, 0}) && pull()) {
    }
    return has_position_beyond({instruction, 0});
  };
  if (!waits && !reads_->waits_before(now.instruction)) {
    reads_->begin(now.instruction);
  } else if (before == ReadCheck::kNone || !reach(before)) {
    reads_->skip(now.instruction);
  } else if (const auto d = reads_->settle(now.instruction, machine_->memory())) {
    stop_with(*d, {before, 0});
  }
  result_.totals.reads = reads_->compared();
  reach(now.instruction);
}

void Verifier::begin_reads(Position now) {
  if (now.instruction != reads_->instruction()) follow_reads(now);
  // An event that came at a REP has it start again from zero: counts no longer order its reads.
  reads_->reach(now.instruction == interrupted_ ? ReadCheck::kAnyIteration : now.iteration);
}

void Verifier::fetch(PhysAddr a, std::uint32_t size, Position now) {
  if (reads_ == nullptr || beyond_ || expects_nothing(now)) return;
  begin_reads(now);
  reads_->fetched(a, size, machine_->memory());
}

/// Bits that no manual tells of a byte that MOVS stores: those it had where it was read. Linux
/// copies the frames of interrupts from one stack to another.
std::uint8_t Verifier::copied_bits(std::size_t byte, Position now) const {
  if (copied_at_ != now || specific_bytes_.empty()) return 0;
  const auto source = specific_bytes_.find(copied_from_.value + static_cast<std::uint32_t>(byte));
  return source != specific_bytes_.end() ? source->second.bits : std::uint8_t{0};
}

void Verifier::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  if (reads_ == nullptr || beyond_) return;
  if (expects_nothing(now)) {
    if (kind == AccessKind::walk) reads_->table(machine_->memory().captured(a));
    return;
  }
  if (!specific_bytes_.empty() && kind == AccessKind::data && machine_->in_string_copy()) {
    copied_from_ = machine_->memory().captured(a);
    copied_at_ = now;
  }
  begin_reads(now);
  reads_->read(a, size, kind, machine_->memory());
}

void Verifier::address_space(std::uint32_t cr3, Position) {
  if (reads_ == nullptr) return;
  reads_->address_space(cr3);
  // A processor may look into a directory where the replay still holds what is mapped globally.
  const Memory& memory = machine_->memory();
  for (const PhysAddr at : machine_->mmu().page_directories()) reads_->table(memory.captured(at));
}

/// `changed` are accessed or dirty bits of what may be a page-table entry: processors also set them
/// for accesses they only foresaw (SDM vol. 3, 4.8).
bool Verifier::marks_table_entry(PhysAddr a, std::uint8_t before, std::uint8_t changed) const {
  constexpr std::uint32_t kPaging = 1u << 31;
  constexpr unsigned kPresent = 1, kAccessedOrDirty = 0x60;
  return changed != 0 && (changed & ~kAccessedOrDirty) == 0 && (before & kPresent) != 0 &&
         a.value % 4 == 0 && (machine_->engine().cr(0) & kPaging) != 0;
}

void Verifier::check_bit_change(PhysAddr a, bool table_entry, std::uint64_t transaction,
                                Position now) {
  if (!options_.policy.bit_changes && !is_waived(transaction) && !table_entry &&
      lone_changes_.stands_alone(a)) {
    char at[16];
    std::snprintf(at, sizeof at, "%08x", a.value);
    throw ReplayStopped{now,
                        "a read shows one bit of memory other than it was left, and nothing else "
                        "around it that another bus master wrote",
                        transaction, memory_text(machine_->memory(), a, 4) + " at " + at,
                        "one bit changed: captured wrongly, or by a device (accept with "
                        "--accept-bit-changes)"};
  }
  VerifyTotals& totals = result_.totals;
  if (totals.single_bit_changes++ == 0) totals.first_single_bit_change = transaction;
}

void Verifier::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  unsigned bits = 0;
  bool table_entry = false;
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t before = machine_->memory().defined_byte(a + i).value_or(bytes[i]);
    const auto changed = static_cast<std::uint8_t>(before ^ bytes[i]);
    bits += static_cast<unsigned>(std::popcount(changed));
    table_entry |= marks_table_entry(a + i, before, changed);
  }
  // The write itself, and the transaction that showed it, come with the recording.
  const auto shown = std::find_if(
      recording_.external_writes.begin() + static_cast<std::ptrdiff_t>(externals_seen_),
      recording_.external_writes.end(), [&](const ExternalWrite& w) { return w.address == a; });
  ++externals_seen_;
  const std::uint64_t transaction =
      shown != recording_.external_writes.end() ? shown->transaction : ~std::uint64_t{0};
  if (bits == 1) check_bit_change(a, table_entry, transaction, now);
  if (bits != 0 || recording_.bus.form != CacheForm::write_back || reads_ == nullptr) return;
  // Memory already holds what "another" master wrote: the replay's own stores came back, and the
  // cache never showed that it gave them up.
  if (!plain_ && !final_memory_.is_unconfirmed(a)) return;
  BusTransaction t;
  t.index = transaction;
  t.op = BusOp::data_read;
  t.address = a;
  t.size = static_cast<std::uint8_t>(std::min<std::size_t>(bytes.size(), kMaxTransactionBytes));
  stop_with({"memory shows what the processor wrote, and no write-back of it was captured", t,
             memory_text(machine_->memory(), a, t.size)},
            now);
}

}  // namespace citcat
