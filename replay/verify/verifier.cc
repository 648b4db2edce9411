#include "replay/verify/verifier.h"

#include <algorithm>

namespace citcat {

Verifier::Verifier(const Recording& recording, std::unique_ptr<EvidenceReader> evidence,
                   const VerifierOptions& options)
    : VerifierProgress(recording),
      recording_(recording),
      evidence_(std::move(evidence)),
      options_(options),
      lone_changes_(recording.external_writes),
      plain_(options.plain && allows_blocks()),
      joins_lines_(plain_ && options.policy.waived.empty()),
      final_memory_(recording, {.keeps_model = options.final_memory &&
                                               recording.bus.form != CacheForm::write_back,
                                .knows_lines = !plain_}) {
  const bool has_reads = recording_.totals.reads + recording_.totals.line_fills != 0;
  if (options_.reads && has_reads && recording_.instructions) {
    reads_ = std::make_unique<ReadCheck>(recording_, plain_);
  }
}

Verifier::~Verifier() = default;

Verifier::Checkpoint Verifier::checkpoint() const {
  Checkpoint c{*this, final_memory_.progress(), nullptr};
  if (reads_ != nullptr)
    c.reads = std::make_shared<const ReadCheck::Checkpoint>(reads_->checkpoint());
  return c;
}

void Verifier::restore(const Checkpoint& checkpoint) {
  static_cast<VerifierProgress&>(*this) = checkpoint.progress;
  final_memory_.restore(checkpoint.final_memory);
  if (reads_ != nullptr) reads_->restore(*checkpoint.reads);
}

// ---------------------------------------------------------------------------------------------
// Writes

bool Verifier::writes_visible(PhysAddr a) const {
  if (recording_.bus.form != CacheForm::write_back) return true;
  // Of a write-back cache the bus shows only what is not cacheable; captures mark those.
  return !writes_.empty() &&
         std::any_of(writes_.begin(), writes_.end(), [&](const PendingWrite& w) {
           return a.value >= w.t.address.value && a.value < w.t.address.value + w.t.size;
         });
}

void Verifier::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                     Position now) {
  const bool write_back = recording_.bus.form == CacheForm::write_back;
  if (beyond_ && !write_back) throw EvidenceEnd{};
  std::optional<FlagImage> overwritten;
  if (plain_) overwritten = note_image(a, bytes);
  if (write_back && expects_nothing(now)) return;
  if (reads_ != nullptr && !beyond_) {
    begin_reads(now);
    reads_->stored(a, static_cast<std::uint32_t>(bytes.size()), machine_->memory());
  }
  if (write_back) pull_through(now);
  if (overwritten && kind == AccessKind::system) excuse_image(a, *overwritten, now);
  const std::uint32_t unspecified = unspecified_bits(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const PhysAddr at = machine_->memory().captured(a + static_cast<std::uint32_t>(i));
    auto bits = static_cast<std::uint8_t>(unspecified >> (i % 4 * 8));
    if (write_back && !writes_visible(at)) {
      if (plain_) continue;
      if (bits == 0) bits = copied_bits(i, now);
      if (!lines_.empty() && !specific_bytes_.empty()) excuse_overwritten(at, now);
      final_memory_.stored(at);
      set_specific(at, bits, bytes[i]);
      continue;
    }
    match_byte(at, bytes[i], bits, now);
  }
  if (write_back && !lines_.empty()) check_lines(now);
  if (!window_lines_.empty()) {
    const auto last_byte = a + static_cast<std::uint32_t>(bytes.size() - 1);
    const std::uint32_t last = window_of(machine_->memory().captured(last_byte));
    for (std::uint32_t w = window_of(machine_->memory().captured(a)); w <= last; ++w) {
      if (settle_lines(w)) progress_at_ = now.instruction;
    }
  }
  drop_matched();
}

Verifier::PendingWrite* Verifier::find_pending(std::uint32_t address, unsigned& byte,
                                               Position now) {
  for (std::size_t i = 0; i < kWriteWindow; ++i) {
    if (i >= writes_.size()) {
      if (has_position_beyond(now)) return nullptr;
      if (!pull()) return nullptr;
      if (held() > kMaxHeld) return nullptr;
      --i;
      continue;
    }
    PendingWrite& w = writes_[i];
    if (w.t.has(kPositionKnown) && w.t.position.instruction > now.instruction) return nullptr;
    const std::uint32_t offset = address - w.t.address.value;
    if (offset < w.t.size && (w.unmatched >> offset & 1) != 0) {
      if (i != 0) out_of_order_ = true;
      byte = offset;
      return &w;
    }
  }
  return nullptr;
}

void Verifier::match_byte(PhysAddr a, std::uint8_t value, std::uint8_t unspecified, Position now) {
  unsigned byte = 0;
  PendingWrite* pending = find_pending(a.value, byte, now);
  if (pending == nullptr) {
    if (evidence_used_up() || cut_off(now)) {
      // The capture ends inside this instruction.
      final_memory_.stored_beyond_end(a);
      return;
    }
    Mismatch mismatch{
        "the replay writes memory where the processor did not", {}, write_text(a, {&value, 1})};
    if (!writes_.empty()) mismatch.expected = writes_.front().t;
    stop_with(mismatch, now);
  }
  if (out_of_order_) require_order(*pending, a, value, now);
  BusTransaction& t = pending->t;
  if (t.data[byte] != value && !adopt(*pending, byte, a, value, unspecified)) {
    stop_with({"the replay writes another value than the processor did", t,
               memory_text(machine_->memory(), t.address, t.size)},
              now);
  }
  pending->unmatched &= ~(1u << byte);
  if (pending->unmatched == 0) write_agreed(t);
}

/// Where the order of the processor's stores is known, the captured write just `made` is the first
/// of those that are left.
void Verifier::require_order(const PendingWrite& made, PhysAddr a, std::uint8_t value,
                             Position now) const {
  if (made.t.has(kPositionKnown) || !machine_->knows_order_of_stores()) return;
  for (std::size_t i = 0; &writes_[i] != &made; ++i) {
    if (writes_[i].unmatched == 0) continue;
    stop_with({"the replay writes memory in another order than the processor did", writes_[i].t,
               write_text(a, {&value, 1})},
              now);
  }
}

void Verifier::write_agreed(const BusTransaction& t) {
  VerifyTotals& totals = result_.totals;
  ++totals.writes.checked;
  ++totals.writes.equal;
  totals.evidence_bytes += t.size;
  result_.last_agreed = t.index;
  final_memory_.write_agreed(t);
}

/// The byte as stored has `bits` that no manual tells, and has not been on the bus yet.
void Verifier::set_specific(PhysAddr a, std::uint8_t bits, std::uint8_t value) {
  if (bits != 0) {
    specific_bytes_[a.value] = {bits, value};
    specific_lines_.insert(line_of(a.value));
  } else if (!specific_bytes_.empty() && specific_lines_.contains(line_of(a.value))) {
    specific_bytes_.erase(a.value);
  }
}

bool Verifier::made_by_specific_store() const {
  return machine_->model_specific_results() != 0 && machine_->in_floating_point_store();
}

bool Verifier::adopt(PendingWrite& pending, unsigned byte, PhysAddr a, std::uint8_t value,
                     std::uint8_t unspecified) {
  const bool may = !options_.policy.strict && ((pending.t.data[byte] ^ value) & ~unspecified) == 0;
  if (!may && !is_waived(pending.t.index)) return false;
  machine_->memory().external_write(a, {&pending.t.data[byte], 1});
  result_.adoptions.push_back({machine_->position(), true, a, pending.t.data[byte]});
  if (!pending.adopted) ++result_.totals.adopted;
  pending.adopted = true;
  return true;
}

bool Verifier::is_waived(std::uint64_t transaction) const {
  return std::binary_search(options_.policy.waived.begin(), options_.policy.waived.end(),
                            transaction);
}

/// The capture ends within the instruction in progress: nothing of it is left to compare with.
bool Verifier::cut_off(Position now) const {
  return at_end_ && counted_ && now.instruction >= pulled_.instruction &&
         std::none_of(writes_.begin(), writes_.end(),
                      [](const PendingWrite& w) { return w.unmatched != 0; });
}

bool Verifier::evidence_used_up() const {
  // Where positions are known the replay ends by them; without, where everything has been seen.
  return at_end_ && !counted_ && ports_.waiting() == 0 && specials_.empty() &&
         window_lines_.empty() &&
         std::none_of(writes_.begin(), writes_.end(),
                      [](const PendingWrite& w) { return w.unmatched != 0; });
}

void Verifier::end_if_used_up(Position now) {
  if (beyond_ || counted_) return;
  if (at_end_ && !window_lines_.empty() && ports_.waiting() == 0 &&
      now.instruction > progress_at_ + kMaxIdle) {
    settle_window(now);
  }
  if (!writes_.empty() || !starts_.empty() || !ports_.waiting() == 0) return;
  if (!at_barrier()) pull();
  if (final_memory_.ended_within_instruction() || (starts_.empty() && evidence_used_up()))
    throw EvidenceEnd{};
}

void Verifier::drop_matched() {
  while (!writes_.empty() && writes_.front().unmatched == 0) writes_.pop_front();
  if (writes_.empty() || !out_of_order_) out_of_order_ = false;
}

void Verifier::require_nothing_missing(Position completed) {
  if (writes_.empty()) return;
  const PendingWrite& first = writes_.front();
  const bool late =
      first.t.has(kPositionKnown)
          ? first.t.position.instruction <= completed.instruction
          : out_of_order_ && std::any_of(writes_.begin(), writes_.end(),
                                         [](const PendingWrite& w) { return w.unmatched == 0; });
  if (late)
    stop_with({"the processor wrote memory and the replay did not", first.t, "nothing"}, completed);
}

// ---------------------------------------------------------------------------------------------
// Instructions and interrupts

void Verifier::delivered(const DeliveredEvent& event, Position now) {
  follow_untold_flags();
  forget_lost_images();
  flags_.image_follows(event.eflags);
  constexpr unsigned kPageFault = 14;
  if (reads_ != nullptr && !beyond_ && event.kind == DeliveredEvent::Kind::exception &&
      event.vector == kPageFault) {
    begin_reads(now);
    reads_->page_fault(event.cr2);
  }
  interrupted_ = now.instruction;
  if (expected_.instruction == interrupted_) expected_.iteration = 0;
  const bool outside = event.kind == DeliveredEvent::Kind::external;
  if (!outside) return;
  if (!counted_) {
    pull_through(now);
    settle_window(now);
  }
  ++interrupts_seen_;
}

void Verifier::instruction(const ExecutedInstruction& e, Position now) {
  follow_untold_flags();
  follow_flags(*e.info);
  if (expects_nothing(now)) return;
  if (beyond_) return;
  end_if_used_up(now);
  if (recording_.totals.instruction_starts != 0) {
    check_instruction_start(e, now);
  } else {
    require(starts_.observe(e, now, result_), now);
  }
  pull_through(now);
  if (!lines_.empty()) {
    check_lines(now);
    expire_lines(now, e.info->is_repeated());
  }
  if (!e.info->is_repeated()) require_nothing_missing(now);
  // State before the next instruction: lines given up by it, before it changes them.
  const Position next = e.info->is_repeated() ? Position{now.instruction, now.iteration + 1}
                                              : Position{now.instruction + 1, 0};
  if (recording_.bus.form == CacheForm::write_back) {
    pull_through(Position{now.instruction + 1, 0});
    if (!lines_.empty()) check_lines(std::max(next, Position{now.instruction + 1, 0}));
  }
}

void Verifier::check_instruction_start(const ExecutedInstruction& e, Position now) {
  const DecodedInstruction& info = *e.info;
  // The pins report a REP once, however often it iterates.
  if (info.is_repeated() && now.iteration != 0) return;
  const auto expect = [&](std::uint32_t offset, bool prefix) {
    while (starts_.empty()) {
      if (!pull()) return;
      if (held() > kMaxHeld) break;
    }
    if (starts_.empty()) return;
    const PhysAddr at = machine_->memory().captured(e.physical + offset);
    require(
        starts_.observe({at, {info.bytes.data() + offset, info.length - offset}, prefix}, result_),
        now);
  };
  for (std::uint32_t i = 0; i < info.prefix_bytes; ++i) expect(i, true);
  expect(info.prefix_bytes, false);
}

// ---------------------------------------------------------------------------------------------
// Special cycles

void Verifier::check_special(BusOp op, Position now) {
  if (beyond_) throw EvidenceEnd{};
  while (specials_.empty()) {
    if (!pull()) return;
    if (held() + lines_.size() > kMaxHeld) return;
    if (has_position_beyond(now)) break;
  }
  require(specials_.observe(op, result_), now);
}

void Verifier::halted(Position now) { check_special(BusOp::halt, now); }
void Verifier::cache_flushed(bool, Position now) { check_special(BusOp::flush, now); }
void Verifier::shutdown(Position now) { check_special(BusOp::shutdown, now); }

}  // namespace citcat
