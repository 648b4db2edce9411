#include "capture/import/dump_window.h"

#include <algorithm>
#include <array>

#include "driver-kmod/uapi/citcat_dump.h"

namespace citcat {
namespace {

constexpr std::uint32_t kWord = 4;
// A window begins at any page. The header leaves that to the machine; a driver can only reserve
// whole pages.
constexpr std::uint32_t kAlignment = kPageSize;
// A stray magic word in ordinary data must not make us watch ever more places.
constexpr std::size_t kMaxCandidates = 64;
// The reader takes more leaves and MSRs than the driver has room for in its own tables, but never
// more than the state block can hold.
constexpr std::uint32_t kMaxCpuid = CITCAT_STATE_MAX_BYTES / CITCAT_CPUID_BYTES;
constexpr std::uint32_t kMaxMsr = CITCAT_STATE_MAX_BYTES / CITCAT_MSR_BYTES;

std::uint32_t msr_count_offset(std::uint32_t cpuid_count) {
  return CITCAT_STATE_MSR_COUNT(cpuid_count);
}
std::uint32_t end_offset(std::uint32_t cpuid_count, std::uint32_t msr_count) {
  return CITCAT_STATE_MSR(cpuid_count, msr_count);
}

bool in_block(PhysAddr base, const BusTransaction& t) {
  return t.address.is_within32(base, CITCAT_STATE_MAX_BYTES);
}

/// Takes words out of a window and keeps the names of those that are not there.
class WordReader {
 public:
  WordReader(const MemoryImage& written, PhysAddr base) : written_(written), base_(base) {}

  /// The word at `offset`; `fallback` when it was never written, and `name` becomes unknown.
  std::uint32_t get(std::uint32_t offset, const std::string& name, std::uint32_t fallback = 0) {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < kWord; ++i) {
      const auto byte = written_.byte(base_.plus32(offset + i));
      if (!byte) {
        if (std::find(missing_.begin(), missing_.end(), name) == missing_.end()) {
          missing_.push_back(name);
        }
        return fallback;
      }
      value |= std::uint32_t{*byte} << (8 * i);
    }
    return value;
  }
  std::vector<std::string> take_missing() { return std::move(missing_); }

 private:
  const MemoryImage& written_;
  PhysAddr base_;
  std::vector<std::string> missing_{};
};

Segment read_segment(WordReader& in, std::uint32_t offset, const std::string& name,
                     const Segment& fallback) {
  Segment s;
  s.selector = static_cast<std::uint16_t>(in.get(offset, name, fallback.selector));
  s.base = in.get(offset + CITCAT_SEGMENT_BASE, name + ".base", fallback.base);
  s.limit = in.get(offset + CITCAT_SEGMENT_LIMIT, name + ".limit", fallback.limit);
  const std::uint32_t attributes =
      in.get(offset + CITCAT_SEGMENT_ATTRIBUTES, name + ".attributes", fallback.attributes);
  s.attributes = static_cast<std::uint16_t>(attributes);
  s.unusable = (attributes & CITCAT_SEGMENT_UNUSABLE) != 0;
  return s;
}

TableRegister read_table(WordReader& in, std::uint32_t offset, const std::string& name) {
  TableRegister table;
  table.base = in.get(offset, name + ".base");
  table.limit = static_cast<std::uint16_t>(in.get(offset + 4, name + ".limit", table.limit));
  return table;
}

void read_general(WordReader& in, CpuState& s) {
  constexpr std::array kGpr{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
  for (std::uint32_t i = 0; i < kGpr.size(); ++i) {
    s.gpr[i] = in.get(CITCAT_STATE_GPR(i), kGpr[i]);
  }
  s.eip = in.get(CITCAT_STATE_EIP, "eip");
  s.eflags = in.get(CITCAT_STATE_EFLAGS, "eflags", s.eflags);
  constexpr std::array kSegments{"es", "cs", "ss", "ds", "fs", "gs"};
  for (std::uint32_t i = 0; i < kSegments.size(); ++i) {
    s.segment[i] = read_segment(in, CITCAT_STATE_SEGMENT(i), kSegments[i], s.segment[i]);
  }
}

void read_system(WordReader& in, CpuState& s) {
  s.ldtr = read_segment(in, CITCAT_STATE_SEGMENT(6), "ldtr", s.ldtr);
  s.tr = read_segment(in, CITCAT_STATE_SEGMENT(7), "tr", s.tr);
  s.gdtr = read_table(in, CITCAT_STATE_GDTR_BASE, "gdtr");
  s.idtr = read_table(in, CITCAT_STATE_IDTR_BASE, "idtr");
  s.cr0 = in.get(CITCAT_STATE_CR0, "cr0", s.cr0);
  s.cr2 = in.get(CITCAT_STATE_CR2, "cr2");
  s.cr3 = in.get(CITCAT_STATE_CR3, "cr3");
  s.cr4 = in.get(CITCAT_STATE_CR4, "cr4");
  constexpr std::array<std::uint32_t, 6> kDebug{0, 1, 2, 3, 6, 7};
  for (std::uint32_t i = 0; i < kDebug.size(); ++i) {
    std::uint32_t& dr = s.dr[kDebug[i]];
    dr = in.get(CITCAT_STATE_DR(i), "dr" + std::to_string(kDebug[i]), dr);
  }
  s.a20_mask = in.get(CITCAT_STATE_A20_MASK, "a20_mask", s.a20_mask);
}

void read_machine(WordReader& in, CpuState& s, std::vector<std::string>& warnings) {
  constexpr std::uint32_t kHalted = 1;
  const std::uint32_t activity = in.get(CITCAT_STATE_ACTIVITY, "activity");
  s.halted = activity == kHalted;
  if (activity > kHalted) {
    warnings.push_back("state dump: activity state " + std::to_string(activity) +
                       " is neither running nor halted");
  }
  s.in_smm = in.get(CITCAT_STATE_IN_SMM, "in_smm") != 0;
  s.ram_bytes = in.get(CITCAT_STATE_RAM_BYTES, "ram_bytes");
  s.ignore_cr0_cd = in.get(CITCAT_STATE_IGNORE_CR0_CD, "ignore_cr0_cd") != 0;
  s.tsc = in.get(CITCAT_STATE_TSC_LOW, "tsc");
  s.tsc |= std::uint64_t{in.get(CITCAT_STATE_TSC_HIGH, "tsc")} << 32;
  for (std::uint32_t i = 0; i < s.fx.size(); i += kWord) {
    const std::uint32_t fallback = s.fx[i] | std::uint32_t{s.fx[i + 1]} << 8 |
                                   std::uint32_t{s.fx[i + 2]} << 16 |
                                   std::uint32_t{s.fx[i + 3]} << 24;
    const std::uint32_t value = in.get(CITCAT_STATE_FXSAVE + i, "fx", fallback);
    for (std::uint32_t b = 0; b < kWord; ++b) {
      s.fx[i + b] = static_cast<std::uint8_t>(value >> (8 * b));
    }
  }
}

std::string hex_name(const char* prefix, std::uint32_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = prefix;
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[number >> shift & 15];
  return text;
}

void read_cpuid(WordReader& in, std::uint32_t count, CpuState& s) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t at = CITCAT_STATE_CPUID(i);
    CpuidLeaf leaf;
    leaf.leaf = in.get(at, "cpuid");
    const std::string name = hex_name("cpuid.", leaf.leaf);
    leaf.eax = in.get(at + 4, name);
    leaf.ebx = in.get(at + 8, name);
    leaf.ecx = in.get(at + 12, name);
    leaf.edx = in.get(at + 16, name);
    s.cpuid.push_back(leaf);
  }
  std::stable_sort(s.cpuid.begin(), s.cpuid.end(),
                   [](const auto& a, const auto& b) { return a.leaf < b.leaf; });
}

void read_msrs(WordReader& in, std::uint32_t at, std::uint32_t count, CpuState& s) {
  for (std::uint32_t i = 0; i < count; ++i, at += CITCAT_MSR_BYTES) {
    Msr msr;
    msr.index = in.get(at, "msr");
    const std::string name = hex_name("msr.", msr.index);
    msr.value = in.get(at + 4, name);
    msr.value |= std::uint64_t{in.get(at + 8, name)} << 32;
    s.msrs.push_back(msr);
  }
  std::stable_sort(s.msrs.begin(), s.msrs.end(),
                   [](const auto& a, const auto& b) { return a.index < b.index; });
}

}  // namespace

CpuModel cpu_model_of(const std::vector<CpuidLeaf>& leaves) {
  for (const CpuidLeaf& leaf : leaves) {
    if (leaf.leaf != 1) continue;
    // Intel SDM vol. 2, CPUID: family in bits 8-11; 15 (and AMD's use of it) extends P6.
    switch (leaf.eax >> 8 & 15) {
      case 3:
        return CpuModel::i386;
      case 4:
        return CpuModel::i486;
      case 5:
        return CpuModel::pentium;
      default:
        return CpuModel::p6;
    }
  }
  return CpuModel::unknown;
}

std::optional<std::uint32_t> DumpFinder::word(PhysAddr base, std::uint32_t offset) const {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < kWord; ++i) {
    const auto byte = written_.byte(base.plus32(offset + i));
    if (!byte) return std::nullopt;
    value |= std::uint32_t{*byte} << (8 * i);
  }
  return value;
}

/// Where the end word belongs by the counts in the dump.
std::optional<std::uint32_t> DumpFinder::end_by_counts(PhysAddr base) const {
  const auto leaves = word(base, CITCAT_STATE_CPUID_COUNT);
  if (!leaves || *leaves > kMaxCpuid) return std::nullopt;
  const auto msrs = word(base, msr_count_offset(*leaves));
  if (!msrs || *msrs > kMaxMsr) return std::nullopt;
  const std::uint32_t end = end_offset(*leaves, *msrs);
  return end < CITCAT_STATE_MAX_BYTES ? std::optional(end) : std::nullopt;
}

/// Where an end word stands that fits some counts which the dump does not contradict.
std::optional<std::uint32_t> DumpFinder::end_by_magic(PhysAddr base) const {
  const auto said_leaves = word(base, CITCAT_STATE_CPUID_COUNT);
  for (std::uint32_t leaves = 0; leaves <= kMaxCpuid; ++leaves) {
    if (said_leaves && *said_leaves != leaves) continue;
    const auto said_msrs = word(base, msr_count_offset(leaves));
    for (std::uint32_t msrs = 0; msrs <= kMaxMsr; ++msrs) {
      if (said_msrs && *said_msrs != msrs) continue;
      const std::uint32_t end = end_offset(leaves, msrs);
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
  if (t.address.offset_in(kAlignment) >= kWord) return;
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
    const std::uint32_t first = t.address.minus32(c.base) & ~(kWord - 1);
    for (std::uint32_t at = first; at < t.address.minus32(c.base) + t.size; at += kWord) {
      if (word(c.base, at)) c.missing.erase(at);
    }
    return c.missing.empty();
  }
  if (word(c.base, 0) != CITCAT_STATE_MAGIC) return false;
  const auto end = end_by_counts(c.base);
  if (!end || word(c.base, *end) != CITCAT_STATE_END) return false;
  c.end = end;
  for (std::uint32_t at = 0; at <= *end; at += kWord) {
    if (!word(c.base, at)) c.missing.insert(at);
  }
  return c.missing.empty();
}

const DumpFinder::Candidate* DumpFinder::best() const {
  if (complete_) return &candidates_[*complete_];
  const auto rank = [this](const Candidate& c) {
    if (c.end) return 4;
    const bool begins = word(c.base, 0) == CITCAT_STATE_MAGIC;
    if (begins && end_by_magic(c.base)) return 3;
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
  auto end = window->end;
  if (!end) end = end_by_magic(window->base);
  if (!end) end = end_by_counts(window->base);
  WordReader in(written_, window->base);
  if (in.get(0, "magic", CITCAT_STATE_MAGIC) != CITCAT_STATE_MAGIC) return std::nullopt;
  if (in.get(CITCAT_STATE_VERSION_OFFSET, "version", CITCAT_STATE_VERSION) != CITCAT_STATE_VERSION)
    return std::nullopt;

  DumpedState dumped;
  dumped.base = window->base;
  CpuState& s = dumped.state;
  read_general(in, s);
  read_system(in, s);
  read_machine(in, s, dumped.warnings);
  std::uint32_t leaves = std::min(in.get(CITCAT_STATE_CPUID_COUNT, "cpuid"), kMaxCpuid);
  std::uint32_t msrs = 0;
  if (end) {
    dumped.end = *end + kWord;
    // A count that is missing follows from the other one and the place of the end word.
    for (std::uint32_t n = 0; n <= kMaxCpuid; ++n) {
      if (word(window->base, CITCAT_STATE_CPUID_COUNT).value_or(n) != n ||
          msr_count_offset(n) >= *end)
        continue;
      const std::uint32_t rest = *end - msr_count_offset(n) - kWord;
      const std::uint32_t count = rest / CITCAT_MSR_BYTES;
      if (rest % CITCAT_MSR_BYTES != 0) continue;
      if (word(window->base, msr_count_offset(n)).value_or(count) != count) continue;
      leaves = n;
      msrs = count;
      break;
    }
    in.get(*end, "end");
  } else {
    dumped.warnings.push_back("state dump: its end is missing; MSRs are unknown");
    leaves = 0;
  }
  read_cpuid(in, leaves, s);
  if (end) {
    in.get(msr_count_offset(leaves), "msr");
    read_msrs(in, msr_count_offset(leaves) + kWord, msrs, s);
  }
  s.model = cpu_model_of(s.cpuid);
  s.unknown = in.take_missing();
  s.unknown.emplace_back("smbase");  // no word of the block holds it
  for (const std::string& name : s.unknown) {
    if (name == "smbase") continue;
    dumped.warnings.push_back("state dump: " + name + " was not written");
  }
  return dumped;
}

}  // namespace citcat
