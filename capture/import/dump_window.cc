#include "capture/import/dump_window.h"

#include <algorithm>

#include "capture/import/dump_state.h"
#include "driver-kmod/uapi/citcat_dump.h"

namespace citcat {
namespace {

constexpr std::uint32_t kWindowWord = 4;
// A window begins at any page. The header leaves that to the machine; a driver can only reserve
// whole pages.
constexpr std::uint32_t kAlignment = kPageSize;
// A stray magic word in ordinary data must not make us watch ever more places.
constexpr std::size_t kMaxCandidates = 64;
// The reader takes more leaves and MSRs than the driver has room for in its own tables, but never
// more than the state block can hold.
constexpr std::uint32_t kMaxCpuid = CITCAT_STATE_MAX_BYTES / CITCAT_CPUID_BYTES;
constexpr std::uint32_t kMaxMsr = CITCAT_STATE_MAX_BYTES / CITCAT_MSR_BYTES;

// The block of 64 bits beside one of version 1.
constexpr std::uint32_t kWideBegin = CITCAT_STATE64_MAGIC_OFFSET;
constexpr std::uint32_t kWideWindow = CITCAT_STATE64_END_OFFSET + kWindowWord - kWideBegin;

bool in_block(PhysAddr base, const BusTransaction& t) {
  return t.address.is_within32(base, CITCAT_STATE_MAX_BYTES);
}

}  // namespace

std::optional<std::uint32_t> DumpFinder::word(PhysAddr base, std::uint32_t offset) const {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < kWindowWord; ++i) {
    const auto byte = written_.byte(base.plus32(offset + i));
    if (!byte) return std::nullopt;
    value |= std::uint32_t{*byte} << (8 * i);
  }
  return value;
}

/// The layout that the dump says it has, or by the counts of which the end word is where it
/// belongs.
std::optional<DumpLayout> DumpFinder::told_layout(PhysAddr base) const {
  if (const auto said = word(base, CITCAT_STATE_VERSION_OFFSET)) return dump_layout(*said);
  for (const std::uint32_t version :
       {std::uint32_t{CITCAT_STATE_VERSION}, std::uint32_t{CITCAT_STATE2_VERSION}}) {
    const DumpLayout its = dump_layout(version);
    const auto end = end_by_counts(base, its);
    if (end && word(base, *end) == CITCAT_STATE_END) return its;
  }
  return std::nullopt;
}

/// The same, or the one that some end word fits.
DumpLayout DumpFinder::layout(PhysAddr base) const {
  if (const auto told = told_layout(base)) return *told;
  const DumpLayout first = dump_layout(CITCAT_STATE_VERSION),
                   second = dump_layout(CITCAT_STATE2_VERSION);
  return end_by_magic(base, first) || !end_by_magic(base, second) ? first : second;
}

/// Where the end word belongs by the counts in the dump.
std::optional<std::uint32_t> DumpFinder::end_by_counts(PhysAddr base, const DumpLayout& its) const {
  const auto leaves = word(base, its.cpuid_count);
  if (!leaves || *leaves > kMaxCpuid) return std::nullopt;
  const auto msrs = word(base, its.msr_count(*leaves));
  if (!msrs || *msrs > kMaxMsr) return std::nullopt;
  const std::uint32_t end = its.end(*leaves, *msrs);
  return end < CITCAT_STATE_MAX_BYTES ? std::optional(end) : std::nullopt;
}

/// Where an end word is that fits some counts which the dump does not contradict.
std::optional<std::uint32_t> DumpFinder::end_by_magic(PhysAddr base, const DumpLayout& its) const {
  const auto said_leaves = word(base, its.cpuid_count);
  for (std::uint32_t leaves = 0; leaves <= kMaxCpuid; ++leaves) {
    if (said_leaves && *said_leaves != leaves) continue;
    const auto said_msrs = word(base, its.msr_count(leaves));
    for (std::uint32_t msrs = 0; msrs <= kMaxMsr; ++msrs) {
      if (said_msrs && *said_msrs != msrs) continue;
      const std::uint32_t end = its.end(leaves, msrs);
      if (end >= CITCAT_STATE_MAX_BYTES) break;
      if (word(base, end) == CITCAT_STATE_END) return end;
    }
  }
  return std::nullopt;
}

bool DumpFinder::take(const BusTransaction& t) {
  if (t.op != BusOp::data_write) return false;
  if (!complete_) {
    written_.set(t.address, t.bytes());
    if (t.has(kStateWindow)) note_mark(t);
    note_magic(t);
  } else if (t.address.is_within32(candidates_[*complete_].base.plus32(kWideBegin), kWideWindow)) {
    // A driver in a 64-bit kernel writes its general registers into both blocks last.
    written_.set(t.address, t.bytes());
  }
  bool inside = t.has(kStateWindow);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (in_block(candidates_[i].base, t)) {
      inside = true;
      if (!complete_ && update(candidates_[i], t)) complete_ = i;
    } else if (t.address.minus32(candidates_[i].base) == CITCAT_MARK_OFFSET && candidates_[i].end) {
      inside = true;
      started_ |= t.value() == CITCAT_MARK_START;
      stopped_ |= t.value() == CITCAT_MARK_STOP;
    }
  }
  return inside;
}

bool DumpFinder::concerns(const AccessRun& run) const {
  // As a number, or the compiler would not take several at a time.
  const std::uint32_t watched = watched_.low32();
  std::uint32_t near = 0;
  const auto look_at = [&](std::uint32_t address) {
    near |= address - watched < kWatchedBytes ? 1U : 0U;
  };
  if (run.columns == nullptr) {
    for (std::size_t i = 0; i < run.size(); ++i) look_at(run.record(i).address);
  } else {
    const std::uint32_t* const addresses = &run.columns->address[run.column];
    for (std::size_t i = 0; i < run.size(); ++i) look_at(addresses[i]);
  }
  return near != 0;
}

/// A begin word at the beginning of a possible window makes it a candidate.
void DumpFinder::note_magic(const BusTransaction& t) {
  // The word may be written in parts: look at the window's first word whenever it is touched.
  if (t.address.offset_in(kAlignment) >= kWindowWord) return;
  const PhysAddr base = t.address.begin_of(kAlignment);
  if (word(base, 0) != CITCAT_STATE_MAGIC) return;
  const bool known = std::any_of(candidates_.begin(), candidates_.end(),
                                 [&](const Candidate& c) { return c.base == base; });
  if (known || candidates_.size() == kMaxCandidates) return;
  candidates_.push_back({base, false, std::nullopt, {}});
}

/// A marked write outside the windows known so far shows that there is one, even where the begin
/// word is missing.
void DumpFinder::note_mark(const BusTransaction& t) {
  for (Candidate& c : candidates_) {
    if (!in_block(c.base, t)) continue;
    c.marked = true;
    return;
  }
  if (candidates_.size() == kMaxCandidates) return;
  candidates_.push_back({t.address.begin_of(kAlignment), true, std::nullopt, {}});
}

/// Returns true when the write completes the candidate.
bool DumpFinder::update(Candidate& c, const BusTransaction& t) {
  if (c.end) {
    const std::uint32_t first = t.address.minus32(c.base) & ~(kWindowWord - 1);
    for (std::uint32_t at = first; at < t.address.minus32(c.base) + t.size; at += kWindowWord) {
      if (word(c.base, at)) c.missing.erase(at);
    }
    return c.missing.empty();
  }
  if (word(c.base, 0) != CITCAT_STATE_MAGIC) return false;
  const auto its = told_layout(c.base);
  const auto end = its ? end_by_counts(c.base, *its) : std::nullopt;
  if (!end || word(c.base, *end) != CITCAT_STATE_END) return false;
  c.end = end;
  for (std::uint32_t at = 0; at <= *end; at += kWindowWord) {
    if (!word(c.base, at)) c.missing.insert(at);
  }
  return c.missing.empty();
}

const DumpFinder::Candidate* DumpFinder::best() const {
  if (complete_) return &candidates_[*complete_];
  const auto rank = [this](const Candidate& c) {
    if (c.end) return 4;
    const bool begins = word(c.base, 0) == CITCAT_STATE_MAGIC;
    if (begins && end_by_magic(c.base, layout(c.base))) return 3;
    if (c.marked) return begins ? 2 : 1;
    return 0;
  };
  const auto best =
      std::max_element(candidates_.begin(), candidates_.end(),
                       [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
  return best == candidates_.end() || rank(*best) == 0 ? nullptr : &*best;
}

bool DumpFinder::found() const { return best() != nullptr; }

bool DumpFinder::expects_marker() const {
  const Candidate* const window = best();
  return window != nullptr && (word(window->base, CITCAT_MARK_SEGMENT).has_value() ||
                               word(window->base, CITCAT_MEMORY_MAP_COUNT).has_value());
}

std::optional<DumpedState> DumpFinder::take_state() {
  if (best() == nullptr) return std::nullopt;
  candidates_ = {*best()};
  complete_ = 0;
  const Candidate* const window = candidates_.data();
  static_assert(CITCAT_STATE_MAX_BYTES <= kWatchedBytes && CITCAT_MARK_OFFSET < kWatchedBytes);
  watched_ = window->base;
  const DumpLayout its = layout(window->base);
  auto end = window->end;
  if (!end) end = end_by_magic(window->base, its);
  if (!end) end = end_by_counts(window->base, its);
  DumpWords in(written_, window->base);
  if (in.get(0, "magic", CITCAT_STATE_MAGIC) != CITCAT_STATE_MAGIC) return std::nullopt;
  if (in.get(CITCAT_STATE_VERSION_OFFSET, "version", its.version) != its.version)
    return std::nullopt;

  DumpedState dumped;
  dumped.base = window->base;
  constexpr std::uint32_t kWaitsForStartup = 3;
  const bool is_wide = its.version == CITCAT_STATE2_VERSION;
  dumped.waits_for_startup =
      word(window->base, is_wide ? CITCAT_STATE2_ACTIVITY : CITCAT_STATE_ACTIVITY) ==
      kWaitsForStartup;
  DumpCounts counts{std::min(word(window->base, its.cpuid_count).value_or(0), kMaxCpuid), 0};
  if (end) {
    dumped.end = *end + kWindowWord;
    counts = counts_before(window->base, its, *end).value_or(counts);
  } else {
    dumped.warnings.push_back("state dump: its end is missing; MSRs are unknown");
    counts = {};
  }
  dumped.state = read_dump(in, its, form(window->base, its), counts, end, dumped.warnings);
  for (const std::string& name : dumped.state.unknown) {
    if (name == "smbase") continue;
    dumped.warnings.push_back("state dump: " + name + " was not written");
  }
  return dumped;
}

DumpForm DumpFinder::form(PhysAddr base, const DumpLayout& its) const {
  if (its.version == CITCAT_STATE2_VERSION) return DumpForm::wide;
  const bool has_wide = word(base, CITCAT_STATE64_MAGIC_OFFSET) == CITCAT_STATE64_MAGIC &&
                        word(base, CITCAT_STATE64_END_OFFSET) == CITCAT_STATE64_END;
  return has_wide ? DumpForm::narrow_and_wide : DumpForm::narrow;
}

/// How many CPUID leaves and MSRs there are where the end word is at `end`: a count that is missing
/// follows from the other one.
std::optional<DumpCounts> DumpFinder::counts_before(PhysAddr base, const DumpLayout& its,
                                                    std::uint32_t end) const {
  for (std::uint32_t leaves = 0; leaves <= kMaxCpuid; ++leaves) {
    if (word(base, its.cpuid_count).value_or(leaves) != leaves || its.msr_count(leaves) >= end)
      continue;
    const std::uint32_t rest = end - its.msr_count(leaves) - kWindowWord;
    const std::uint32_t count = rest / CITCAT_MSR_BYTES;
    if (rest % CITCAT_MSR_BYTES != 0) continue;
    if (word(base, its.msr_count(leaves)).value_or(count) == count) {
      return DumpCounts{leaves, count};
    }
  }
  return std::nullopt;
}

}  // namespace citcat
