#include "replay/verify/read_matcher.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "replay/machine/table_search.h"

namespace citcat {

namespace {

/// How far ahead of the instruction a processor may fetch: two lines of a Pentium (its data sheet,
/// "prefetch buffers").
constexpr std::uint32_t kPrefetch = 64;
/// Fills of one instruction are on the bus in the order of its accesses: how many of those to come
/// are looked at.
constexpr std::size_t kLookAhead = 64;
/// Fetches on the bus that an instruction may have been executed from.
constexpr std::size_t kRecentCode = EvidenceAhead::kFetchesKept;

/// What an access has been found to read: of what is not cached, each byte once.
struct BytesTaken {
  PhysAddr begin, end;
  bool includes(PhysAddr a, std::uint32_t size) const {
    return begin != end && overlap(begin, end.minus32(begin), a, size);
  }
  void add(PhysAddr a, std::uint32_t size) {
    const bool first = begin == end;
    begin = first ? a : std::min(begin, a);
    end = first ? a.plus32(size) : std::max(end, a.plus32(size));
  }
};

std::string read_text(const char* what, PhysAddr a, std::uint32_t size) {
  char text[64];
  std::snprintf(text, sizeof text, "%s of %u bytes at %08" PRIx64, what, size, a.value);
  return text;
}

}  // namespace

ReadMatcher::ReadMatcher(const Recording& recording, const Schedule* schedule, bool plain)
    : recording_(recording),
      uncached_(recording.bus.form == CacheForm::none),
      plain_(plain),
      data_is_shown_(!plain || !uncached_),
      line_bytes_(recording.bus.line_bytes) {
  if (schedule != nullptr) memory_.emplace(recording.image, *schedule);
  const CpuState& state = recording.initial;
  const std::uint64_t upper = state.long_mode ? state.long_mode->cr3_high : 0;
  table_frames_.insert(PhysAddr{upper << 32 | state.cr3}.page());
  // A 486 has lines of 16 bytes, processors that write back of 32 (Intel SDM vol. 3, table 11-1).
  if (line_bytes_ == 0) line_bytes_ = recording.bus.form == CacheForm::write_back ? 32 : 16;
}

// ---------------------------------------------------------------------------------------------
// The captured side

void ReadMatcher::expect(const BusTransaction& t, std::uint8_t parts) {
  memory_->take_external_writes(t.index,
                                [this](const ExternalWrite& w) { set_memory(w.address, w.data); });
  if (t.size == 0 || !t.has(kPositionKnown)) return;
  Pending& p = pending_.emplace_back();
  p.t = t;
  p.parts = parts;
  const bool code = t.op == BusOp::code_read;
  // Without a cache only the addresses of data are compared, and most code is never written.
  const bool later = uncached_ && code && !memory_->is_written(t.address.page());
  if (!later && (code || data_is_shown_)) show_memory(p);
}

void ReadMatcher::expect(const BusTransaction& t, const CapturedContext& context) {
  if (t.size == 0 || !t.has(kPositionKnown)) return;
  Pending& p = pending_.emplace_back();
  p.t = t;
  p.known = context.known;
  p.shown = true;
  p.unwritten = context.unwritten;
  p.parts = context.parts;
}

/// The captured side writes.
void ReadMatcher::set_memory(PhysAddr a, std::span<const std::uint8_t> bytes) {
  memory_->set(a, bytes, [this](FrameNumber frame) { show_waiting(frame); });
}

/// What was read in the frame, and waits, keeps what it held.
void ReadMatcher::show_waiting(FrameNumber frame) {
  for (Pending& p : pending_) {
    if (!p.shown && p.t.address.page() == frame) show_memory(p);
  }
}

// ---------------------------------------------------------------------------------------------
// The replayed side

void ReadMatcher::touch(PhysAddr a, std::uint32_t size, bool code, bool store,
                        const Memory& memory) {
  BytesTaken taken;
  std::size_t looked_at = 0;
  for (auto p = pending_.begin(); p != pending_.end() && looked_at < kLookAhead;) {
    if (p->t.position.instruction > instruction_) break;
    if (plain_ && is_later(p->t.position.iteration)) break;
    const bool is_code = p->t.op == BusOp::code_read;
    const auto [first, bytes] = filled(p->t);
    // Any store may fill its line first, whether the monitor says that it did or not.
    const bool single = !is_code && !p->t.has(kLine);
    const bool meant = is_code == code && (store || !p->t.has(kStoreFill)) &&
                       overlap(a, size, first, bytes) && !(single && taken.includes(first, bytes));
    p->touched |= meant;
    // What a store has changed by the time it is told is not what was filled.
    if (meant && (store || equals(*p, memory))) {
      if (single) taken.add(first, bytes);
      compared_ += p->parts;
      p = pending_.erase(p);
    } else if (is_walk_passed(*p) && equals(*p, memory)) {
      compared_ += p->parts;
      p = pending_.erase(p);
    } else {
      ++p;
      ++looked_at;
    }
  }
}

/// A walk to a page of an earlier iteration, for which the replay has had no need: a REP over many
/// pages would gather more of them than touch() looks at.
bool ReadMatcher::is_walk_passed(const Pending& p) const {
  const Position at = p.t.position;
  return at.instruction == instruction_ && at.iteration < iteration_ &&
         iteration_ != kAnyIteration && p.t.op == BusOp::data_read && !p.touched &&
         is_table(p.t.address);
}

void ReadMatcher::fetched(PhysAddr a, std::uint32_t size, const Memory& memory) {
  if (!expects()) return;
  const PhysAddr at = memory.captured(a);
  const auto is_it = [&](const Access& f) { return f.address == at && f.size == size; };
  // Each iteration of a REP fetches it again.
  if (fetches_.empty() || !is_it(fetches_.back())) fetches_.push_back({at, size});
  if (uncached_) {
    look_at_code(memory);
  } else {
    touch(at, size, true, false, memory);
  }
}

/// What is fetched on the bus may be stored over by the instruction just begun, be it by itself. Of
/// the iterations of a REP each looks only at what the ones before have not found held.
void ReadMatcher::look_at_code(const Memory& memory) {
  bool all_held = true;
  for (std::size_t i = code_held_; i < pending_.size(); ++i) {
    Pending& p = pending_[i];
    if (p.t.position.instruction > instruction_) break;
    if (p.t.op == BusOp::code_read && !p.held) p.held = equals(p, memory);
    all_held &= p.held || p.t.op != BusOp::code_read;
    if (all_held) code_held_ = i + 1;
  }
}

void ReadMatcher::read(PhysAddr a, std::uint32_t size, AccessKind kind, const Memory& memory) {
  const PhysAddr at = memory.captured(a);
  if (kind == AccessKind::walk) table_frames_.insert(at.page());
  if (!expects()) return;
  if (uncached_) {
    reads_.push_back({at, size, kind});
  } else {
    touch(at, size, false, false, memory);
  }
}

void ReadMatcher::stored(PhysAddr a, std::uint32_t size, const Memory& memory) {
  if (!expects()) return;
  const PhysAddr at = memory.captured(a);
  if (uncached_) {
    stores_.push_back({at, size, AccessKind::data});
  } else {
    touch(at, size, false, true, memory);
  }
}

// ---------------------------------------------------------------------------------------------
// One instruction against the other side

/// Neither side has written to its frame: both hold what the image does. Else its bytes are shown.
bool ReadMatcher::is_unwritten(Pending& p, const Memory& memory) const {
  if (p.shown && !p.unwritten) return false;
  if (!memory.is_changed(p.t.address.page())) return true;
  if (!p.shown) show_memory(p);
  return false;
}

bool ReadMatcher::equals(Pending& p, const Memory& memory) const {
  if (is_unwritten(p, memory)) return true;
  const bool in_page = p.t.address.offset_in_page() + p.t.size <= kPageSize;
  if (in_page && memory.holds(p.t.address, p.t.bytes())) return true;
  for (std::uint32_t i = 0; i < p.t.size; ++i) {
    if ((p.known >> i & 1) == 0) continue;
    bool equal = false, defined = false;
    memory.for_each_alias(p.t.address.plus32(i), [&](PhysAddr alias) {
      const auto byte = memory.defined_byte(alias);
      defined |= byte.has_value();
      equal |= byte == p.t.data[i];
    });
    if (defined && !equal) return false;
  }
  return true;
}

/// A fetch on the bus may be ahead of what is executed.
bool ReadMatcher::follows_code(const Pending& p, PhysAddr fetched) const {
  const PhysAddr begin = fetched.begin_of(line_bytes_);
  return p.t.address.is_within32(begin, line_bytes_ + std::max(line_bytes_, kPrefetch));
}

bool ReadMatcher::follows_code(const Pending& p) const {
  return std::any_of(fetches_.begin(), fetches_.end(),
                     [&](const Access& f) { return follows_code(p, f.address); });
}

std::optional<Mismatch> ReadMatcher::settle_fills(const Memory& memory) {
  for (Pending& p : pending_) {
    if (p.t.position.instruction > instruction_) break;
    if (uncached_ && p.t.op != BusOp::code_read) continue;
    bool touched = p.touched;
    if (!touched && p.t.op == BusOp::code_read) touched = follows_code(p);
    if (!touched && p.t.op == BusOp::data_read) touched = is_table(p.t.address);
    if (!touched) {
      if (!p.shown) show_memory(p);
      return Mismatch{"the processor reads what the replay does not", p.t, "nothing"};
    }
    if (!p.held && !equals(p, memory)) {
      return Mismatch{"the replay's memory is not what the bus shows", p.t,
                      memory_text(memory, p.t.address, p.t.size)};
    }
  }
  return std::nullopt;
}

/// Bytes in any order within the instruction. Page walks are left out where only one side has them:
/// the replay's TLB need not be the processor's. A processor may read what it is about to
/// overwrite, but once for each store, and not where the instruction reads it anyway.
std::optional<Mismatch> ReadMatcher::settle_uncached_data() {
  bus_bytes_.clear();
  replay_bytes_.clear();
  for (const Pending& p : pending_) {
    if (p.t.position.instruction > instruction_) break;
    if (p.t.op != BusOp::data_read) continue;
    for (std::uint32_t i = 0; i < p.t.size; ++i) bus_bytes_.push_back(p.t.address.plus32(i).value);
  }
  for (const Access& r : reads_) {
    for (std::uint32_t i = 0; i < r.size; ++i) replay_bytes_.push_back(r.address.plus32(i).value);
  }
  if (bus_bytes_ == replay_bytes_) return std::nullopt;
  std::sort(bus_bytes_.begin(), bus_bytes_.end());
  std::sort(replay_bytes_.begin(), replay_bytes_.end());
  for (std::size_t b = 0, r = 0; b < bus_bytes_.size() || r < replay_bytes_.size();) {
    const std::uint64_t on_bus = b < bus_bytes_.size() ? bus_bytes_[b] : kNone;
    const std::uint64_t ours = r < replay_bytes_.size() ? replay_bytes_[r] : kNone;
    b += on_bus <= ours ? 1 : 0;
    r += ours <= on_bus ? 1 : 0;
    if (on_bus == ours) continue;
    auto disagreement = on_bus < ours ? missing_read(PhysAddr{on_bus}) : extra_read(PhysAddr{ours});
    if (disagreement) return disagreement;
  }
  return std::nullopt;
}

/// A processor that has lost what it held of a page which the replay's TLB holds walks to it again,
/// be it through tables that the replay has not seen.
bool ReadMatcher::is_table(PhysAddr a) const {
  if (table_frames_.contains(a.page())) return true;
  return machine_ != nullptr && names_table(*machine_, a.page());
}

std::optional<Mismatch> ReadMatcher::missing_read(PhysAddr at) const {
  if (is_table(at)) return std::nullopt;
  const auto accesses = [at](const std::vector<Access>& all) {
    return std::count_if(all.begin(), all.end(), [at](const Access& access) {
      return access.kind != AccessKind::walk && at.is_within32(access.address, access.size);
    });
  };
  const auto on_bus = std::equal_range(bus_bytes_.begin(), bus_bytes_.end(), at.value);
  if (on_bus.second - on_bus.first <= std::max(accesses(reads_), accesses(stores_))) {
    return std::nullopt;
  }
  const auto p = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& candidate) {
    return candidate.t.op == BusOp::data_read &&
           at.is_within32(candidate.t.address, candidate.t.size);
  });
  Mismatch mismatch{"the processor reads what the replay does not", {}, "nothing"};
  if (p != pending_.end()) mismatch.expected = p->t;
  return mismatch;
}

std::optional<Mismatch> ReadMatcher::extra_read(PhysAddr at) const {
  const auto r = std::find_if(reads_.begin(), reads_.end(), [&](const Access& candidate) {
    return at.is_within32(candidate.address, candidate.size);
  });
  if (r == reads_.end() || r->kind == AccessKind::walk) return std::nullopt;
  const bool ends_page = r->address.plus32(r->size).offset_in_page() == 0;
  if (ends_page && split_fault_ == instruction_) return std::nullopt;
  return Mismatch{
      "the replay reads what the processor does not", {}, read_text("read", r->address, r->size)};
}

/// Fetches from number `oldest` of recent_code_ on brought every byte of the range.
bool ReadMatcher::was_fetched(PhysAddr a, std::uint32_t size, std::size_t oldest) const {
  const bool recent = straight_code_.fetches <= recent_code_.size() - oldest;
  if (recent && straight_code_.holds(a, size)) return true;
  for (std::uint32_t done = 0; done < size;) {
    const PhysAddr at = a.plus32(done);
    std::size_t i = recent_code_.size();
    const auto brings = [&](const Access& c) { return at.is_within32(c.address, c.size); };
    while (i > oldest && !brings(recent_code_[i - 1])) --i;
    if (i == oldest) return false;
    const Access& c = recent_code_[i - 1];
    done += c.size - at.minus32(c.address);
  }
  return true;
}

void ReadMatcher::forget_old_fetches() {
  if (recent_code_.size() > kRecentCode) recent_code_.drop_front(recent_code_.size() - kRecentCode);
}

std::optional<Mismatch> ReadMatcher::settle_uncached_code() {
  for (const Pending& p : pending_) {
    if (p.t.position.instruction > instruction_) break;
    if (p.t.op == BusOp::code_read) note_fetch(p.t);
  }
  for (const Access& f : fetches_) {
    if (was_fetched(f.address, f.size, 0)) continue;
    return Mismatch{"the replay executes code that the processor did not fetch",
                    {},
                    read_text("instruction", f.address, f.size)};
  }
  forget_old_fetches();
  return std::nullopt;
}

std::optional<Mismatch> ReadMatcher::settle(std::uint64_t next, const Memory& memory) {
  std::optional<Mismatch> result;
  if (uncached_) {
    result = settle_uncached_data();
    if (!result) result = settle_uncached_code();
  }
  if (!result) result = settle_fills(memory);
  compared_ += drop_before(instruction_ + 1);
  begin(next);
  return result;
}

InstructionNumbers ReadMatcher::pending_data(std::uint64_t first) const {
  if (uncached_) return InstructionNumbers::all();
  InstructionNumbers result;
  for (const Pending& p : pending_) {
    if (p.t.op != BusOp::data_read) continue;
    const std::uint64_t instruction = p.t.position.instruction;
    if (instruction < first) return InstructionNumbers::all();
    result.add(instruction - first);
    if (instruction - first >= InstructionNumbers::kLast) break;
  }
  return result;
}

bool ReadMatcher::agrees(const JudgedBlock& block, std::uint64_t first, const BlockMemory& after) {
  if (!uncached_) return agrees_with_fills(block, first, after);
  const std::size_t fetches = recent_code_.size();
  const Straight straight = straight_code_;
  if (agrees_uncached(block, first, after)) return true;
  recent_code_.drop_back(recent_code_.size() - fetches);
  straight_code_ = straight;
  return false;
}

bool ReadMatcher::agrees_with_fills(const JudgedBlock& block, std::uint64_t first,
                                    const BlockMemory& after) const {
  const Pending* before = nullptr;
  for (const Pending& p : pending_) {
    const std::uint64_t number = p.t.position.instruction - first;
    if (p.t.position.instruction >= first + block.count()) break;
    if (p.t.position.instruction < first) return false;
    const bool again = before != nullptr && !p.t.has(kLine) && p.t.op == BusOp::data_read &&
                       before->t.address == p.t.address &&
                       before->t.position.instruction == p.t.position.instruction;
    if (again) return false;
    before = &p;
    if (!agrees(p, after, static_cast<std::uint32_t>(number))) return false;
  }
  return true;
}

/// As settle_uncached_data(), settle_uncached_code() and settle_fills() find it, instruction by
/// instruction: the same reads in the same order, and code from what was fetched. Of data the bus
/// may show page walks besides.
bool ReadMatcher::agrees_uncached(const JudgedBlock& block, std::uint64_t first,
                                  const BlockMemory& after) {
  // What an event before the block read counts as part of the first instruction.
  const auto is_walk = [](const Access& r) { return r.kind == AccessKind::walk; };
  if (!fetches_.empty() || !std::all_of(reads_.begin(), reads_.end(), is_walk)) return false;
  auto read = block.reads.begin();
  std::uint32_t done = 0;  // bytes of `read`
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    const std::size_t oldest = recent_code_.size() - std::min(recent_code_.size(), kRecentCode);
    for (; next < pending_.size(); ++next) {
      Pending& p = pending_[next];
      if (p.t.position.instruction > first + i) break;
      if (p.t.position.instruction < first) return false;
      if (p.t.op == BusOp::code_read) {
        if (!follows_code(p, after.fetched(i))) return false;
        if (!is_unwritten(p, after.memory()) && !equals_before(p, after, i)) return false;
        note_fetch(p.t);
        continue;
      }
      const bool expected = read != block.reads.end() && read->instruction == i &&
                            p.t.address == read->address.plus32(done) &&
                            p.t.size <= read->size - done;
      if (!expected && !is_table(p.t.address)) return false;
      if (!expected) continue;
      done += p.t.size;
      if (done != read->size) continue;
      ++read;
      done = 0;
    }
    if (read != block.reads.end() && read->instruction <= i) return false;
    const auto fetched = [&](PhysAddr a, std::uint32_t size) {
      return was_fetched(a, size, oldest);
    };
    if (!after.all_of_code(i, fetched)) return false;
  }
  return true;
}

/// As touch() and settle_fills() find it, where that does not take more than a look.
bool ReadMatcher::agrees(const Pending& p, const BlockMemory& block,
                         std::uint32_t instruction) const {
  const auto [first, bytes] = filled(p.t);
  if (p.t.op == BusOp::code_read) {
    if (block.fetches_within(instruction, first, bytes)) {
      return equals_before(p, block, instruction);
    }
    return follows_code(p, block.fetched(instruction)) && equals_before(p, block, instruction + 1);
  }
  if (block.stores_within(instruction, first, bytes)) return true;
  if (!p.t.has(kStoreFill) && block.reads_within(instruction, first, bytes)) {
    return equals_before(p, block, instruction);
  }
  return (p.touched || is_table(p.t.address)) && equals_before(p, block, instruction + 1);
}

bool ReadMatcher::equals_before(const Pending& p, const BlockMemory& block,
                                std::uint32_t instruction) const {
  if (p.unwritten && !block.memory().is_changed(p.t.address.page())) return true;
  if (block.holds(p.t.address, p.t.bytes(), p.known)) return true;
  for (std::uint32_t i = 0; i < p.t.size; ++i) {
    if ((p.known >> i & 1) == 0) continue;
    const BlockMemory::Byte byte = block.byte_before(instruction, p.t.address.plus32(i));
    if (byte.state == BlockMemory::Byte::State::undefined) continue;
    if (byte.value != p.t.data[i]) return false;
  }
  return true;
}

std::uint64_t ReadMatcher::pass_block(std::uint64_t last) {
  compared_ += drop_before(last);
  const std::uint64_t before = compared_;
  compared_ += drop_before(last + 1);
  forget_old_fetches();
  begin(last);
  return before;
}

std::uint64_t ReadMatcher::drop_before(std::uint64_t instruction) {
  std::size_t count = 0;
  std::uint64_t parts = 0;
  for (; count < pending_.size(); ++count) {
    const Pending& p = pending_[count];
    if (p.t.position.instruction >= instruction) break;
    parts += p.parts;
  }
  pending_.drop_front(count);
  return parts;
}

void ReadMatcher::skip(std::uint64_t next) {
  // Before the first access nothing of the capture has been compared yet.
  drop_before(instruction_ != kNone ? instruction_ + 1 : next);
  begin(next);
}

}  // namespace citcat
