#include "replay/verify/verifier.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "formats/io/error.h"

namespace citcat {

namespace {

/// Instructions a replay may make after the last event of a capture without counts while a
/// write-back is still waiting for its bytes.
constexpr std::uint64_t kMaxIdle = 10'000'000;

/// Branches remembered until their message comes, and transactions between a message and a write
/// that went out before it or after it.
constexpr std::size_t kMaxBranches = std::size_t{1} << 16;
constexpr std::uint64_t kMaxOvertaking = 1024;

std::string hex_bytes(std::span<const std::uint8_t> bytes) {
  std::string text;
  char buffer[4];
  for (const std::uint8_t b : bytes) {
    std::snprintf(buffer, sizeof buffer, "%02x", b);
    text += buffer;
  }
  return text;
}

std::string describe(const BusTransaction& t) {
  char text[96];
  std::snprintf(text, sizeof text, "%s of %u bytes at %08x", std::string(bus_op_name(t.op)).c_str(),
                t.size, t.address.value);
  std::string result = text;
  if (t.op == BusOp::data_write || t.op == BusOp::io_write) result += " = " + hex_bytes(t.bytes());
  return result;
}

std::string describe_write(PhysAddr a, std::span<const std::uint8_t> bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "write of %zu bytes at %08x = ", bytes.size(), a.value);
  return text + hex_bytes(bytes);
}

}  // namespace

Verifier::Verifier(const Recording& recording, std::unique_ptr<EvidenceReader> evidence,
                   const VerifierOptions& options)
    : recording_(recording),
      evidence_(std::move(evidence)),
      options_(options),
      lone_changes_(recording.external_writes),
      plain_(options.plain && allows_blocks()),
      joins_lines_(plain_ && options.policy.waived.empty()),
      port_bus_(recording.bus, recording.initial.model) {
  keeps_model_ = options_.final_memory && recording_.bus.form != CacheForm::write_back;
  if (keeps_model_) model_ = recording_.image.clone();
  const bool has_reads = recording_.totals.reads + recording_.totals.line_fills != 0;
  if (options_.reads && has_reads && recording_.instructions) {
    reads_ = std::make_unique<ReadCheck>(recording_, plain_);
  }
}

Verifier::~Verifier() = default;

Verifier::Checkpoint Verifier::checkpoint() const {
  Checkpoint c{*this, nullptr};
  if (reads_ != nullptr)
    c.reads = std::make_shared<const ReadCheck::Checkpoint>(reads_->checkpoint());
  return c;
}

void Verifier::restore(const Checkpoint& checkpoint) {
  static_cast<VerifierProgress&>(*this) = checkpoint.progress;
  if (reads_ != nullptr) reads_->restore(*checkpoint.reads);
}

void Verifier::diverged(Position now, const char* reason, const BusTransaction* expected,
                        const std::string& found) const {
  ReplayStopped stop{now, reason, ~std::uint64_t{0}, "nothing", found};
  if (expected != nullptr) {
    stop.transaction = expected->index;
    stop.expected = describe(*expected);
    stop.shown = *expected;
  }
  throw stop;
}

std::string Verifier::memory_text(PhysAddr a, std::uint32_t size) const {
  std::string text;
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto byte = machine_->memory().defined_byte(a + i);
    const std::uint8_t value = byte.value_or(0);
    text += byte ? hex_bytes({&value, 1}) : "??";
  }
  return text;
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
      unconfirmed_lines_.insert(line_of(at.value));
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
      if (writes_.size() + io_.size() + starts_.size() > kMaxHeld) return nullptr;
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
      beyond_end_.insert(a.value);
      return;
    }
    diverged(now, "the replay writes memory where the processor did not",
             writes_.empty() ? nullptr : &writes_.front().t, describe_write(a, {&value, 1}));
  }
  if (out_of_order_) require_order(*pending, a, value, now);
  BusTransaction& t = pending->t;
  if (t.data[byte] != value && !adopt(*pending, byte, a, value, unspecified)) {
    diverged(now, "the replay writes another value than the processor did", &t,
             "bytes " + memory_text(t.address, t.size));
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
    diverged(now, "the replay writes memory in another order than the processor did", &writes_[i].t,
             describe_write(a, {&value, 1}));
  }
}

void Verifier::write_agreed(const BusTransaction& t) {
  ++totals_.writes.checked;
  ++totals_.writes.equal;
  totals_.evidence_bytes += t.size;
  last_agreed_ = t.index;
  if (keeps_model_) {
    if (next_external_ < recording_.external_writes.size()) model_external_writes(t.index);
    model_.set(t.address, t.bytes());
  }
  if (t.has(kUncacheable)) {
    for (std::uint32_t i = 0; i < t.size; ++i) device_bytes_.insert(t.address.value + i);
  }
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

/// Brings into the model what other bus masters wrote, as far as reads before `transaction` showed.
void Verifier::model_external_writes(std::uint64_t transaction) {
  const auto& external = recording_.external_writes;
  for (; next_external_ < external.size(); ++next_external_) {
    const ExternalWrite& w = external[next_external_];
    if (w.transaction >= transaction) return;
    model_.set(w.address, w.data);
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
  adoptions_.push_back({machine_->position(), true, a, pending.t.data[byte]});
  if (!pending.adopted) ++totals_.adopted;
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
  return at_end_ && !counted_ && io_.empty() && specials_.empty() && window_lines_.empty() &&
         std::none_of(writes_.begin(), writes_.end(),
                      [](const PendingWrite& w) { return w.unmatched != 0; });
}

void Verifier::end_if_used_up(Position now) {
  if (beyond_ || counted_) return;
  if (at_end_ && !window_lines_.empty() && io_.empty() &&
      now.instruction > progress_at_ + kMaxIdle) {
    settle_window(now);
  }
  if (!writes_.empty() || !starts_.empty() || !io_.empty()) return;
  if (!at_barrier()) pull();
  if (!beyond_end_.empty() || (starts_.empty() && evidence_used_up())) throw EvidenceEnd{};
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
    diverged(completed, "the processor wrote memory and the replay did not", &first.t, "nothing");
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
    check_branch_targets(e, now);
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
      if (writes_.size() + io_.size() > kMaxHeld) break;
    }
    if (starts_.empty()) return;
    const BusTransaction& t = starts_.front();
    const PhysAddr at = machine_->memory().captured(e.physical + offset);
    const std::size_t n = std::min<std::size_t>(t.size, info.length - offset);
    const bool equal = t.address == at && t.has(kPrefix) == prefix &&
                       std::memcmp(t.data.data(), info.bytes.data() + offset, n) == 0;
    if (!prefix) ++totals_.instructions.checked;
    if (!equal) {
      char text[64];
      std::snprintf(text, sizeof text, "%s at %08x: ", prefix ? "prefix" : "instruction", at.value);
      diverged(now, "the processor executed another instruction", &t,
               text + hex_bytes({info.bytes.data() + offset, info.length - offset}));
    }
    if (!prefix) ++totals_.instructions.equal;
    last_agreed_ = t.index;
    starts_.pop_front();
  };
  for (std::uint32_t i = 0; i < info.prefix_bytes; ++i) expect(i, true);
  expect(info.prefix_bytes, false);
}

/// Takes the messages away whose branch the replay made.
void Verifier::match_branches() {
  while (!starts_.empty()) {
    const BusTransaction& t = starts_.front();
    const auto reached = [&](std::uint32_t at) { return at - t.address.value < t.size; };
    const auto found = std::find_if(
        branches_.taken.begin(), branches_.taken.end(),
        [&](const Branches::Target& b) { return reached(b.linear) || reached(b.eip); });
    if (found == branches_.taken.end()) break;
    branches_.taken.erase(branches_.taken.begin(), found + 1);
    branches_.waits_since.reset();
    ++totals_.instructions.checked;
    ++totals_.instructions.equal;
    starts_.pop_front();
  }
}

/// The next instruction begins here: notes it where that is not behind the one before.
void Verifier::note_branch(std::uint32_t linear, std::uint32_t eip) {
  if (linear == branches_.next_linear && !branches_.after_branch) return;
  if (branches_.taken.size() == kMaxBranches) branches_.taken.pop_front();
  branches_.taken.push_back({linear, eip});
}

/// Branch trace messages tell where a branch went, some time around it: each must be an instruction
/// that was reached otherwise than from the one before it in memory, and they come in that order.
/// Branches without a message were taken while tracing was off.
void Verifier::check_branch_targets(const ExecutedInstruction& e, Position now) {
  note_branch(e.linear, e.eip);
  branches_.next_linear = e.linear + e.info->length;
  branches_.after_branch = e.info->control_flow;
  match_branches();
  if (starts_.empty()) return;
  if (!branches_.waits_since) branches_.waits_since = now.instruction;
  const BusTransaction& t = starts_.front();
  const bool overtaken =
      last_agreed_ != ~std::uint64_t{0} && t.index + kMaxOvertaking < last_agreed_;
  if (!overtaken && now.instruction < *branches_.waits_since + kMaxIdle) return;
  ++totals_.instructions.checked;
  char text[32];
  std::snprintf(text, sizeof text, "instruction at %08x", e.linear);
  diverged(now, kBranchNotTaken, &t, text);
}

// ---------------------------------------------------------------------------------------------
// Special cycles

void Verifier::check_special(BusOp op, Position now) {
  if (beyond_) throw EvidenceEnd{};
  while (specials_.empty()) {
    if (!pull()) return;
    if (writes_.size() + io_.size() + starts_.size() + lines_.size() > kMaxHeld) return;
    if (has_position_beyond(now)) break;
  }
  ++totals_.specials.checked;
  if (specials_.empty() || specials_.front().op != op) {
    diverged(now, "the replay makes a special cycle that the processor did not",
             specials_.empty() ? nullptr : &specials_.front(), std::string(bus_op_name(op)));
  }
  ++totals_.specials.equal;
  last_agreed_ = specials_.front().index;
  specials_.pop_front();
}

void Verifier::halted(Position now) { check_special(BusOp::halt, now); }
void Verifier::cache_flushed(bool, Position now) { check_special(BusOp::flush, now); }
void Verifier::shutdown(Position now) { check_special(BusOp::shutdown, now); }

}  // namespace citcat
