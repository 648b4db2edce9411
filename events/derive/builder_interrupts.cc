// Interrupts of all kinds in a stream of transactions: what RecordingBuilder makes of acknowledges,
// of markers of devices on the chip, and of entries into System Management Mode.

#include <algorithm>
#include <utility>

#include "events/derive/recording_builder.h"
#include "events/startup_event.h"

namespace citcat {

void RecordingBuilder::add_interrupt(const BusTransaction& t, Interrupt::Kind kind) {
  if (kind == Interrupt::Kind::smi) {
    saw_smi_ = true;
    smm_.name();
    if (smis_++ == 0) smbase_search_.begin();
  }
  Interrupt event;
  event.kind = is_startup(t) ? kStartupInterrupt : kind;
  if (kind == Interrupt::Kind::external || kind == kResetInterrupt) event.vector = t.data[0];
  if (kind == Interrupt::Kind::nmi) {
    const bool ends_shutdown = t.has(kPositionKnown) && shut_down_at_ == t.position.instruction;
    event.vector = ends_shutdown ? kNmiBehindShutdown : kNmiVector;
    if (ends_shutdown) shut_down_at_.reset();
  }
  event.position_known = t.has(kPositionKnown);
  event.position = t.position;
  if (kind == Interrupt::Kind::external) event.count = std::exchange(count_, std::nullopt);
  event.anchor = counts_;
  event.transaction = t.index;
  recording_.interrupts.push_back(event);
}

/// Keeps the count of an acknowledge whose position is in another unit than instructions.
void RecordingBuilder::keep_count(BusTransaction& t) {
  if (!t.has(kPositionKnown)) return;
  const std::uint64_t value = t.position.instruction;
  t.flags &= static_cast<std::uint16_t>(~kPositionKnown);
  t.position = {};
  if (t.op != BusOp::interrupt_acknowledge) return;
  count_ = EventCount{options_.counts, value, counted_from_start_};
}

void RecordingBuilder::add_on_chip(std::uint8_t vector, const BusTransaction& t) {
  Interrupt event;
  event.kind = Interrupt::Kind::on_chip;
  event.vector = vector;
  event.anchor = counts_;
  event.transaction = t.index;
  recording_.interrupts.push_back(event);
  ++counts_.interrupts;
}

/// A read that marks an interrupt comes before what the processor pushes: flags, CS and IP at least
/// (Intel SDM vol. 3, 6.12.1). Of these the last is the marker, which a program that happens to
/// push its flags where it was interrupted does not store by itself.
void RecordingBuilder::look_for_markers(const BusTransaction& t) {
  constexpr unsigned kLeastPushes = 3;
  const bool stores = t.op == BusOp::data_write && !t.has(kWriteBack);
  if (delivery_ && stores && --delivery_->stores_left == 0) {
    add_on_chip(delivery_->vector, t);
    delivery_.reset();
  }
  for (const OnChipMarker& marker : options_.on_chip) {
    if (!marker.shown_by(t)) continue;
    if (marker.kind == OnChipMarker::Kind::memory_read) {
      delivery_ = Delivery{marker.vector, kLeastPushes};
    } else {
      add_on_chip(marker.vector, t);
    }
    return;
  }
}

void RecordingBuilder::add_smm_entry(const SmmEntryDetector::Entry& entry) {
  if (!saw_smi_) {
    if (smis_++ == 0) smbase_ = entry.smbase;
    Interrupt event;
    event.kind = Interrupt::Kind::smi;
    event.position_known = entry.position_known;
    event.position = entry.position;
    event.anchor = entry.anchor;
    event.transaction = entry.transaction;
    recording_.interrupts.push_back(event);
  }
  Interrupt& last = recording_.interrupts.back();
  if (last.kind != Interrupt::Kind::smi) return;
  last.vector = entry.revision.value_or(0);
  if (!entry.revision) smm_revision_at_ = entry.revision_at;
}

/// A cache holds the saved state back: its revision shows when the line is written back, or read
/// uncached. The handler does not change it.
void RecordingBuilder::find_smm_revision(const BusTransaction& t) {
  const bool shows = t.op == BusOp::data_write || (t.op == BusOp::data_read && !t.has(kLine));
  const std::uint32_t offset = smm_revision_at_->minus32(t.address);
  if (!shows || offset >= t.size) return;
  const auto smi =
      std::find_if(recording_.interrupts.rbegin(), recording_.interrupts.rend(),
                   [](const Interrupt& event) { return event.kind == Interrupt::Kind::smi; });
  if (smi != recording_.interrupts.rend()) smi->vector = t.data[offset];
  smm_revision_at_.reset();
}

}  // namespace citcat
