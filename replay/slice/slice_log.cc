#include "replay/slice/slice_log.h"

#include <cstring>
#include <utility>

#include "formats/io/hash.h"
#include "replay/machine/machine.h"

namespace citcat {
namespace {

/// The number of a block's code in the log, kept with the block.
struct PieceNote final : BlockNote {
  explicit PieceNote(std::uint32_t n) : number(n) {}
  std::uint32_t number;
};

bool is_told_behind_delivery(InstructionClass kind) {
  return kind == InstructionClass::int_n || kind == InstructionClass::int3 ||
         kind == InstructionClass::into || kind == InstructionClass::icebp;
}

std::uint64_t key_of(const CodePiece& piece) {
  std::uint64_t key = piece.code.size();
  for (const LoggedCode& c : piece.code) {
    const std::uint64_t parts[3] = {key, c.physical.value, c.linear.value};
    key = hash64({reinterpret_cast<const std::uint8_t*>(parts), sizeof parts}) ^
          hash64({c.info.bytes.data(), c.info.length});
  }
  return key;
}

bool is_same(const CodePiece& a, const CodePiece& b) {
  if (a.code.size() != b.code.size()) return false;
  for (std::size_t i = 0; i < a.code.size(); ++i) {
    const LoggedCode &x = a.code[i], &y = b.code[i];
    const bool same =
        x.physical == y.physical && x.linear == y.linear && x.info.length == y.info.length &&
        x.info.bits64 == y.info.bits64 && x.info.operand_bytes == y.info.operand_bytes &&
        x.info.address_bits == y.info.address_bits && x.info.real_or_v86 == y.info.real_or_v86 &&
        std::memcmp(x.info.bytes.data(), y.info.bytes.data(), x.info.length) == 0;
    if (!same) return false;
  }
  return true;
}

}  // namespace

const ValueFlow& CodePiece::flow(std::size_t i) const {
  if (flows_.size() != code.size()) flows_.resize(code.size());
  if (flows_[i] == nullptr) flows_[i] = std::make_unique<ValueFlow>(value_flow(code[i].info));
  return *flows_[i];
}

void CodePiece::look() const {
  if (std::exchange(looked_at_, true)) return;
  for (std::size_t i = 0; i < code.size(); ++i) {
    written_ |= flow(i).written;
    branches_ |= flow(i).branch;
    const InstructionClass kind = code[i].info.kind;
    transfers_far_ |= kind == InstructionClass::far_call || kind == InstructionClass::far_jump ||
                      kind == InstructionClass::iret;
  }
}

const PlaceSet& CodePiece::written() const {
  look();
  return written_;
}

bool CodePiece::branches() const {
  look();
  return branches_;
}

bool CodePiece::transfers_far() const {
  look();
  return transfers_far_;
}

// ---------------------------------------------------------------------------------------------

Interest SliceLog::interest_from(std::uint64_t instruction) {
  if (on_ || instruction >= skip_to_) return interest();
  return {.code = Detail::nothing, .until = skip_to_};
}

void SliceLog::begin() {
  entries_.clear();
  accesses_.clear();
  ports_.clear();
  events_.clear();
  pending_.clear();
  pending_ports_.clear();
  begun_ = false;
  delivering_.reset();
  software_.reset();
  on_ = true;
}

void SliceLog::end() {
  flush_others();
  on_ = false;
}

LogEntry& SliceLog::add(LogEntry::Kind kind, Position first) {
  LogEntry& entry = entries_.emplace_back();
  entry.kind = kind;
  entry.first = first;
  entry.accesses = static_cast<std::uint32_t>(accesses_.size());
  entry.ports = static_cast<std::uint32_t>(ports_.size());
  return entry;
}

void SliceLog::take_pending(LogEntry& entry) {
  accesses_.insert(accesses_.end(), pending_.begin(), pending_.end());
  ports_.insert(ports_.end(), pending_ports_.begin(), pending_ports_.end());
  pending_.clear();
  pending_ports_.clear();
  begun_ = false;
  entry.access_count = static_cast<std::uint32_t>(accesses_.size()) - entry.accesses;
  entry.port_count = static_cast<std::uint32_t>(ports_.size()) - entry.ports;
}

/// What was told so far belongs to no instruction that completed.
void SliceLog::flush_others() {
  if (delivering_) {
    LogEntry& entry = add(LogEntry::Kind::delivery, delivering_at_);
    entry.piece = static_cast<std::uint32_t>(events_.size());
    events_.push_back(*std::exchange(delivering_, std::nullopt));
    take_pending(entry);
    return;
  }
  drop_begun();
}

/// An instruction was left. What it stored is there all the same.
void SliceLog::drop_begun() {
  std::erase_if(pending_, [](const LoggedAccess& a) { return !a.write; });
  if (!pending_.empty()) {
    take_pending(add(LogEntry::Kind::unfinished, delivering_at_));
  }
  pending_ports_.clear();
  begun_ = false;
}

// ---------------------------------------------------------------------------------------------
// Code

std::uint32_t SliceLog::find_piece(CodePiece&& piece) {
  const std::uint64_t key = key_of(piece);
  const auto [begin, end] = known_.equal_range(key);
  for (auto i = begin; i != end; ++i) {
    if (is_same(pieces_[i->second], piece)) return i->second;
  }
  const auto number = static_cast<std::uint32_t>(pieces_.size());
  pieces_.push_back(std::move(piece));
  known_.emplace(key, number);
  return number;
}

std::uint32_t SliceLog::piece_of(const ExecutedBlock& block) {
  std::unique_ptr<BlockNote>* const note = block.note();
  if (note != nullptr && *note != nullptr) return static_cast<PieceNote&>(**note).number;
  CodePiece piece;
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    piece.code.push_back({block.decoded(i), block.linear(i), block.physical(i)});
  }
  const std::uint32_t number = find_piece(std::move(piece));
  if (note != nullptr) *note = std::make_unique<PieceNote>(number);
  return number;
}

std::uint32_t SliceLog::piece_of(const ExecutedInstruction& e) {
  CodePiece piece;
  piece.code.push_back({*e.info, e.linear, e.physical});
  return find_piece(std::move(piece));
}

void SliceLog::log_block(const ExecutedBlock& block, Position first) {
  LogEntry& entry = add(LogEntry::Kind::code, first);
  entry.piece = piece_of(block);
  for (const DataReference& r : block.references()) {
    if (r.kind == AccessKind::walk) continue;
    accesses_.push_back({r.linear, r.physical, r.size, r.instruction, r.kind, r.write});
  }
  entry.access_count = static_cast<std::uint32_t>(accesses_.size()) - entry.accesses;
}

void SliceLog::ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) {
  if (!on_) return;
  flush_others();
  for (const ExecutedBlock& b : blocks) {
    log_block(b, first);
    first.instruction += b.count();
  }
}

void SliceLog::iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now) {
  if (!on_ || count == 0) return;
  if (!begun_ && (!pending_.empty() || delivering_)) flush_others();
  if (software_ && is_told_behind_delivery(first.info->kind)) {
    delivering_ = std::exchange(software_, std::nullopt);
    delivering_at_ = now;
    return flush_others();
  }
  // A REP whose count is 0 does nothing.
  const bool nothing =
      first.info->is_repeated() && first.ea_count == 0 && first.info->ea_count != 0;
  if (nothing) return drop_begun();
  const bool repeated = first.info->is_repeated();
  LogEntry& entry = add(repeated ? LogEntry::Kind::iterations : LogEntry::Kind::code, now);
  entry.piece = piece_of(first);
  entry.count = count;
  entry.step = step;
  for (const DataReference& r : first.references) {
    if (r.kind == AccessKind::walk) continue;
    pending_.push_back({r.linear, r.physical, r.size, 0, r.kind, r.write});
  }
  take_pending(entry);
}

// ---------------------------------------------------------------------------------------------
// What is told access by access

void SliceLog::fetch(PhysAddr, std::uint32_t, Position now) {
  if (!on_ || begun_) return;
  if (!pending_.empty() || delivering_) flush_others();
  begun_ = true;
  delivering_at_ = now;
}

void SliceLog::add_access(PhysAddr a, std::uint32_t size, AccessKind kind, bool write) {
  if (!on_ || kind == AccessKind::walk) return;
  LoggedAccess& access = pending_.emplace_back();
  access.physical = a;
  access.size = static_cast<std::uint16_t>(size);
  access.kind = kind;
  access.write = write;
  if (kind == AccessKind::data) access.linear = machine_->accessed();
}

void SliceLog::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position) {
  add_access(a, size, kind, false);
}

void SliceLog::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position) {
  add_access(a, static_cast<std::uint32_t>(bytes.size()), kind, true);
}

void SliceLog::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position) {
  if (!on_) return;
  pending_ports_.push_back({port, size, value, used_().port_reads - 1});
}

void SliceLog::delivered(const DeliveredEvent& event, Position now) {
  if (!on_) return;
  const LoggedDelivery delivery{event, machine_->next_linear()};
  if (event.kind == DeliveredEvent::Kind::software) {
    software_ = delivery;
    return;
  }
  flush_others();
  software_.reset();
  delivering_ = delivery;
  delivering_at_ = now;
}

void SliceLog::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  if (!on_) return;
  flush_others();
  machine_->memory().for_each_alias(a, [&](PhysAddr place) {
    LogEntry& entry = add(LogEntry::Kind::external, now);
    entry.count = static_cast<std::uint32_t>(bytes.size());
    entry.number = used_().external_writes - 1;
    accesses_.push_back(
        {{}, place, static_cast<std::uint16_t>(bytes.size()), 0, AccessKind::data, true});
    entry.access_count = 1;
  });
}

}  // namespace citcat
