#include "replay/run/confidence.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "formats/io/hash.h"
#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"
#include "replay/machine/memory.h"

namespace citcat {

namespace {

constexpr std::uint32_t kLineBytes = 16;  ///< transactions of longer lines count for each part

bool is_transfer_of_control(InstructionClass kind) {
  return kind >= InstructionClass::jcc && kind <= InstructionClass::rsm;
}

bool comes_before(const UnconstrainedInput& a, const UnconstrainedInput& b) {
  return std::tie(a.kind, a.address, a.number, a.name) <
         std::tie(b.kind, b.address, b.number, b.name);
}

}  // namespace

/// What is known of the bytes of a page frame while the replay goes on.
struct Confidence::Page {
  std::bitset<kPageSize> touched;                ///< followed: `set` means something
  std::array<Set, kPageSize> set{};              ///< what the byte was made from
  std::array<std::uint64_t, kPageSize> since{};  ///< instruction that stored it
};

/// What the bus showed, taken together before the replay.
struct Confidence::Evidence {
  explicit Evidence(const Recording& recording, EvidenceReader& reader) {
    const bool write_back = recording.bus.form == CacheForm::write_back;
    for (BusTransaction t; reader.next(t);) {
      if (!t.is_memory()) continue;
      if (t.op == BusOp::data_write) {
        take_write(t, write_back);
      } else {
        take_read(t);
      }
    }
  }
  bool shown_again(PhysAddr a) const {
    const auto found = frames.find(a.page());
    return found != frames.end() && found->second->again[a.offset_in_page()];
  }
  /// Whether the line of `a` was written back between two instructions.
  bool written_back(PhysAddr a, std::uint64_t from, std::uint64_t to) const {
    const auto found = write_backs.find(a.value / kLineBytes);
    if (found == write_backs.end()) return false;
    const auto first = std::lower_bound(found->second.begin(), found->second.end(), from);
    return first != found->second.end() && *first <= to;
  }

  struct Frame {
    std::bitset<kPageSize> seen, again, written;
  };
  std::unordered_map<FrameNumber, std::unique_ptr<Frame>> frames;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> write_backs;  ///< ascending

 private:
  Frame& frame(PhysAddr a) {
    std::unique_ptr<Frame>& found = frames[a.page()];
    if (!found) found = std::make_unique<Frame>();
    return *found;
  }
  void take_read(const BusTransaction& t) {
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const PhysAddr a{t.address.value + i};
      Frame& f = frame(a);
      const std::size_t at = a.offset_in_page();
      if (f.written[at]) continue;
      if (f.seen[at]) f.again.set(at);
      f.seen.set(at);
    }
  }
  void take_write(const BusTransaction& t, bool write_back) {
    if (write_back && t.has(kPositionKnown)) {
      for (std::uint32_t i = 0; i < t.size; i += kLineBytes) {
        write_backs[t.address.plus32(i).value / kLineBytes].push_back(t.position.instruction);
      }
    }
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const PhysAddr a{t.address.value + i};
      frame(a).written.set(a.offset_in_page());
    }
  }
};

Confidence::Confidence(const Recording& recording, EvidenceReader& evidence,
                       std::optional<std::uint64_t> line)
    : recording_(recording),
      evidence_(std::make_unique<Evidence>(recording, evidence)),
      asked_(line) {
  if (asked_) sets_.keep_constrained();
  const bool long_mode = recording.initial.long_mode.has_value();
  const unsigned registers =
      long_mode ? InstructionFlow::kRegisters : unsigned{InstructionFlow::kExtended};
  for (unsigned r = 0; r < registers; ++r) {
    UnconstrainedInput input;
    input.kind = UnconstrainedInput::Kind::reg;
    input.name = flow_register_name(r, long_mode);
    register_[r] = sets_.of(add_input(std::move(input)));
  }
}

Confidence::~Confidence() = default;

void Confidence::watch(const Machine& machine) { machine_ = &machine; }

OriginSets::Origin Confidence::add_input(UnconstrainedInput input) {
  inputs_.push_back(std::move(input));
  uses_.emplace_back();
  confirmed_.emplace_back();
  return sets_.add();
}

void Confidence::constrain(Set set, Confirmation::Kind why, Position at) {
  for (const OriginSets::Origin origin : sets_.members(set)) {
    if (!sets_.constrained(origin)) confirmed_[origin] = {why, at};
  }
  sets_.constrain(set);
}

Confidence::Page& Confidence::page(PhysAddr a) {
  std::unique_ptr<Page>& found = pages_[a.page()];
  if (!found) found = std::make_unique<Page>();
  return *found;
}

/// What the byte was made from; it becomes an input where nothing has stored to it yet.
Confidence::Set Confidence::byte(PhysAddr a) {
  Page& p = page(a);
  const std::size_t at = a.offset_in_page();
  if (p.touched[at]) return p.set[at];
  p.touched.set(at);
  p.set[at] = OriginSets::kNone;
  const bool again = evidence_->shown_again(a);
  const bool is_asked = asked_ && !line_;
  if (!recording_.image.byte(a) || (again && !is_asked)) return OriginSets::kNone;
  UnconstrainedInput input;
  input.address = a;
  p.set[at] = sets_.of(add_input(std::move(input)));
  if (again) constrain(p.set[at], Confirmation::Kind::seen_again, {});
  return p.set[at];
}

void Confidence::store(PhysAddr a, Set set, std::uint64_t instruction) {
  Page& p = page(a);
  const std::size_t at = a.offset_in_page();
  // What was there is seen when its line was written back before this.
  if (p.touched[at] && p.set[at] != OriginSets::kNone &&
      evidence_->written_back(a, p.since[at], instruction)) {
    constrain(p.set[at], Confirmation::Kind::written_back, {p.since[at], 0});
  }
  p.touched.set(at);
  p.set[at] = set;
  p.since[at] = instruction;
}

Confidence::Set Confidence::registers(std::uint32_t which) const {
  auto& sets = const_cast<OriginSets&>(sets_);
  Set all = OriginSets::kNone;
  for (; which != 0; which &= which - 1) {
    all = sets.unite(all, register_[static_cast<unsigned>(std::countr_zero(which))]);
  }
  return all;
}

const InstructionFlow& Confidence::flow(const ExecutedInstruction& e) {
  const std::span<const std::uint8_t> code(e.info->bytes.data(), e.info->length);
  const std::uint64_t hash = hash64(code) + static_cast<std::uint64_t>(bits_);
  auto& [kept, flow] = flows_[e.physical.value];
  if (kept != hash) {
    kept = hash;
    flow = instruction_flow(code, bits_);
  }
  return flow;
}

/// Accesses of an instruction that did not complete are no part of the next.
void Confidence::begin(Position now) {
  if (now == open_at_) return;
  open_at_ = now;
  code_ = values_ = OriginSets::kNone;
  stores_.clear();
  to_port_ = false;
}

void Confidence::fetch(PhysAddr a, std::uint32_t size, Position now) {
  begin(now);
  bits_ = code_bits(machine_->engine());
  for (std::uint32_t i = 0; i < size; ++i) {
    code_ = sets_.unite(code_, byte(machine_->memory().captured(a.plus32(i))));
  }
}

void Confidence::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  begin(now);
  if (kind == AccessKind::walk) return;
  for (std::uint32_t i = 0; i < size; ++i) {
    values_ = sets_.unite(values_, byte(machine_->memory().captured(a.plus32(i))));
  }
}

void Confidence::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                       Position now) {
  begin(now);
  if (kind == AccessKind::walk) return;
  stores_.push_back({machine_->memory().captured(a), static_cast<std::uint32_t>(bytes.size())});
}

void Confidence::io_read(std::uint16_t, std::uint32_t, std::uint32_t, Position now) {
  begin(now);
  UnconstrainedInput input;
  input.kind = UnconstrainedInput::Kind::port_read;
  input.number = port_reads_++;
  values_ = sets_.unite(values_, sets_.of(add_input(std::move(input))));
}

void Confidence::io_write(std::uint16_t, std::uint32_t, std::uint32_t, Position now) {
  begin(now);
  to_port_ = true;
}

/// Another bus master's bytes are on the bus when they are read; that they are is an event's
/// matter.
void Confidence::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    store(a.plus32(i), OriginSets::kNone, now.instruction);
  }
}

void Confidence::delivered(const DeliveredEvent&, Position now) {
  constexpr std::uint32_t kPushed = 1u << InstructionFlow::kFlags |
                                    1u << InstructionFlow::kSegments |
                                    1u << (InstructionFlow::kSegments + 1);
  finish_stores(registers(kPushed), now.instruction);
}

void Confidence::finish_stores(Set set, std::uint64_t instruction) {
  const bool shown = recording_.bus.form != CacheForm::write_back;
  if (shown && !stores_.empty()) constrain(set, Confirmation::Kind::stored, {instruction, 0});
  for (const Store& s : stores_) {
    for (std::uint32_t i = 0; i < s.size; ++i) {
      store(s.address.plus32(i), shown ? OriginSets::kNone : set, instruction);
    }
  }
  stores_.clear();
}

void Confidence::note_use(Set set, const ExecutedInstruction& e, Position now) {
  if (set == OriginSets::kNone) return;
  for (const OriginSets::Origin origin : sets_.members(set)) {
    Use& use = uses_[origin];
    if (use.lines++ == 0) {
      use.first = now;
      use.linear = e.linear;
    }
  }
}

/// What decides what runs next is constrained by all that does.
void Confidence::constrain_decision(const ExecutedInstruction& e, Set values, Position now) {
  if (is_transfer_of_control(e.info->kind)) constrain(values, Confirmation::Kind::ran_next, now);
}

/// `set`: what the line of the instruction is made from.
void Confidence::note_line(Set set, const ExecutedInstruction& e, Position now) {
  const auto members = sets_.members(set);
  line_ = LineOrigins{now, e.linear, members.size() < OriginSets::kMostMembers, {}};
  line_origins_.assign(members.begin(), members.end());
  sets_.keep_only(line_origins_);
}

void Confidence::instruction(const ExecutedInstruction& e, Position now) {
  begin(now);
  const InstructionFlow& f = flow(e);
  const Set addresses = registers(f.addresses);
  const Set inputs = sets_.unite(sets_.unite(registers(f.values), values_), code_);
  const Set all = sets_.unite(inputs, addresses);
  // A line of the trace has the instruction's bytes and its addresses.
  const Set line = sets_.unite(code_, e.ea_count != 0 ? addresses : OriginSets::kNone);
  note_use(line, e, now);
  if (asked_ == now.instruction && !line_) note_line(line, e, now);
  const bool stores = !stores_.empty();
  if (stores || (recording_.bus.form == CacheForm::none && e.ea_count != 0)) {
    constrain(addresses, Confirmation::Kind::addressed, now);
  }
  if (to_port_) constrain(all, Confirmation::Kind::port, now);
  constrain_decision(e, all, now);
  finish_stores(all, now.instruction);
  for (std::uint32_t written = f.written; written != 0; written &= written - 1) {
    register_[static_cast<unsigned>(std::countr_zero(written))] = all;
  }
  code_ = values_ = OriginSets::kNone;
  to_port_ = false;
}

std::vector<UnconstrainedInput> Confidence::unconstrained() {
  // What is in memory at the end was seen where its line was written back since.
  for (const auto& [number, p] : pages_) {
    for (std::uint32_t at = 0; at < kPageSize; ++at) {
      const PhysAddr a{std::uint64_t{number} * kPageSize + at};
      const bool followed = p->touched[at] && p->set[at] != OriginSets::kNone;
      if (followed && evidence_->written_back(a, p->since[at], ~std::uint64_t{0})) {
        constrain(p->set[at], Confirmation::Kind::written_back, {p->since[at], 0});
      }
    }
  }
  std::vector<UnconstrainedInput> found;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (sets_.constrained(static_cast<OriginSets::Origin>(i)) || uses_[i].lines == 0) continue;
    found.push_back(inputs_[i]);
    found.back().first = uses_[i].first;
    found.back().linear = uses_[i].linear;
    found.back().lines = uses_[i].lines;
  }
  std::sort(found.begin(), found.end(), comes_before);
  return found;
}

std::optional<LineOrigins> Confidence::line() const {
  std::optional<LineOrigins> line = line_;
  if (!line) return line;
  for (const OriginSets::Origin origin : line_origins_) {
    line->inputs.push_back({inputs_[origin], confirmed_[origin]});
  }
  std::sort(line->inputs.begin(), line->inputs.end(),
            [](const LineInput& a, const LineInput& b) { return comes_before(a.input, b.input); });
  return line;
}

}  // namespace citcat
