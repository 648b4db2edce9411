// Values of more than one wrong bit: solved from what the bus shows, mistyped, exchanged.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "events/cpu_traits.h"
#include "replay/diagnose/cause_finder.h"
#include "replay/diagnose/value_guesses.h"
#include "replay/infer/page_map.h"

namespace citcat {
namespace {

constexpr std::uint64_t kEnd = ~std::uint64_t{0};

// Prices (cause_finder_memory.cc).
constexpr double kSolved = 1.4;     ///< a byte or a register is what the bus wants it to be
constexpr double kMistyped = 1.45;  ///< of a register
constexpr double kExchanged = 1.5;
constexpr double kPointer = 1.75;  ///< a register may point near what the bus shows
constexpr double kAnyByte = 1.65;  ///< any value of a byte
constexpr double kPerStep = 0.02, kMaxForSteps = 0.4;
/// Sources of a lineage, nearest first, for which what the bus shows is solved; of which every
/// value of every byte is tried; and instructions before the divergence of whose code it is.
constexpr std::size_t kMaxSolved = 96, kMaxTriedWhole = 8, kCodeTriedWhole = 3;
/// Accesses of the replay's last steps that are compared with what the bus shows.
constexpr std::size_t kStepsCompared = 3;
/// Transactions behind the divergence that show what registers were, or pointed to.
constexpr std::size_t kLookedAt = 64, kPointedTo = 3;
constexpr std::int64_t kFurthestField = 32;
/// How early in a run its initial registers are all suspect.
constexpr std::uint64_t kYoung = 30'000;

constexpr const char* kGeneral[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
constexpr const char* kSegments[] = {"es", "ss", "ds", "fs", "gs"};

std::uint64_t little_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = std::min<std::size_t>(bytes.size(), 8); i-- > 0;)
    value = value << 8 | bytes[i];
  return value;
}

double steps_price(unsigned distance) { return std::min(kPerStep * distance, kMaxForSteps); }

}  // namespace

/// What a store of the replay left at its address, as far as the bus shows it from the divergence
/// on: it may be split.
std::uint64_t CauseFinder::shown_store(const HistoryAccess& store) const {
  std::uint64_t shown = store.value;
  bool seen = false;
  for (const BusTransaction& t : upcoming_) {
    if (t.op != BusOp::data_write) continue;
    const std::uint32_t offset = t.address.value - store.address.value;
    if (offset >= std::min(store.size, 8u)) {
      if (seen) break;
      continue;
    }
    seen = true;
    for (std::uint32_t b = 0; b < t.size && offset + b < 8; ++b) {
      const unsigned at = 8 * (offset + b);
      shown = (shown & ~(std::uint64_t{0xff} << at)) | std::uint64_t{t.data[b]} << at;
    }
  }
  return shown;
}

/// What the replay's last stores and port writes were, and what the bus shows of them.
void CauseFinder::compare_last_steps() {
  const std::uint64_t first = divergence_.transaction != kEnd
                                  ? divergence_.transaction
                                  : transaction_after(divergence_.position);
  upcoming_ = transactions_from(*trials_.open_evidence(), first, kLookedAt);
  const auto& steps = history_.steps();
  for (std::size_t i = steps.size() - std::min(kStepsCompared, steps.size()); i < steps.size();
       ++i) {
    for (const HistoryAccess& a : history_.accesses(steps[i])) compare(a);
  }
}

/// An access of the replay with the next of its kind that the bus shows.
void CauseFinder::compare(const HistoryAccess& a) {
  BusOp op = BusOp::data_write;
  if (a.kind == HistoryAccess::Kind::read) op = BusOp::data_read;
  if (a.kind == HistoryAccess::Kind::port_write) op = BusOp::io_write;
  if (op == BusOp::data_write && a.kind != HistoryAccess::Kind::write) return;
  const auto next = std::find_if(upcoming_.begin(), upcoming_.end(), [&](const BusTransaction& t) {
    return t.op == op && !t.has(kWriteBack);
  });
  if (next == upcoming_.end()) return;
  const std::uint64_t shown = op == BusOp::data_write ? shown_store(a)
                              : op == BusOp::io_write ? next->value()
                                                      : a.value;
  if (shown != a.value) differences_.push_back({a.value, shown});
  if (next->address.value - a.address.value >= std::max(a.size, 1u)) {
    differences_.push_back({a.address.value, next->address.value});
  }
}

/// Linear addresses of what the bus shows next.
std::vector<std::uint64_t> CauseFinder::pointed_to() {
  const Engine& engine = trials_.machine().engine();
  const Memory& memory = trials_.machine().memory();
  const auto read = [&](PhysAddr at) -> std::optional<std::uint32_t> {
    if (!memory.is_mapped(at.page()) || !memory.is_defined(at, 4)) return std::nullopt;
    std::uint32_t value = 0;
    std::memcpy(&value, memory.host(at), 4);
    return value;
  };
  const bool paging = engine.cr(0) >> 31 != 0;
  const PageMap pages = paging ? PageMap(engine.cr(3), read) : PageMap();
  std::set<std::uint32_t> seen;
  std::vector<std::uint64_t> found;
  std::uint32_t end = 0;
  for (const BusTransaction& t : upcoming_) {
    const bool data = t.op == BusOp::data_read || t.op == BusOp::data_write;
    const bool goes_on = t.address.value == std::exchange(end, t.address.value + t.size) ||
                         t.address.value + 2 * t.size == end;
    if (!data || t.has(kWriteBack) || goes_on || !seen.insert(t.address.value).second) continue;
    if (seen.size() > kPointedTo) break;
    for (const std::uint32_t linear : pages.linear_of(t.address)) found.push_back(linear);
  }
  return found;
}

void CauseFinder::suspect_register(const std::string& name, std::uint64_t value, double price) {
  CpuState changed = recording_.initial;
  if (!set_register(changed, name, value)) return;
  const auto before = get_register(recording_.initial, name), now = get_register(changed, name);
  if (!now || now == before || !suspected_.insert({name, *now}).second) return;
  Hint hint;
  hint.kind = Hint::Kind::register_value;
  hint.name = name;
  hint.value = *now;
  add({CauseKind::initial_register,
       fmt::format("{} was {:x} at the start and the state dump has {:x}", name, *now, *before),
       {hint},
       {{0, 0}, 0},
       std::nullopt,
       price});
}

/// Whatever the bus shows of it, moved, added to, or as the segment or pointer to it.
void CauseFinder::solve_register(const std::string& name, double price, bool general) {
  const auto value = get_register(recording_.initial, name);
  if (!value) return;
  const bool narrow = cpu_traits(recording_.initial.model).sixteen_bit;
  const unsigned bits = general && !narrow ? 32 : 16;
  for (const std::uint64_t v : solved_values(*value, bits, differences_)) {
    suspect_register(name, v, kSolved + price);
  }
  for (const std::uint64_t v : mistyped_values(*value, bits))
    suspect_register(name, v, kMistyped + price);
  // What is stored soon may be the register itself.
  for (const BusTransaction& t : upcoming_) {
    if (t.op == BusOp::data_write && t.size >= 2 && t.size <= 4) {
      suspect_register(name, little_endian(t.bytes()), kPointer + price);
    }
  }
  for (const std::uint64_t pointer : pointers_) {
    if (!general) {
      suspect_register(name, pointer >> 4, kPointer + price);
      continue;
    }
    const bool real = bits == 16;
    for (std::int64_t field = -kFurthestField; field <= kFurthestField; field += 2) {
      const std::uint64_t base = real ? stack_or_data_base(name) : 0;
      const std::uint64_t v = pointer - base + static_cast<std::uint64_t>(field);
      if (real && pointer - base > 0xffff) continue;
      suspect_register(name, v, kPointer + price + 0.001 * static_cast<double>(std::abs(field)));
    }
  }
}

/// Of the segment that a 16-bit register is an offset in, unless told otherwise.
std::uint32_t CauseFinder::stack_or_data_base(const std::string& name) const {
  const bool stack = name == "esp" || name == "ebp";
  return recording_.initial.segment[stack ? kSs : name == "edi" ? kEs : kDs].base;
}

bool CauseFinder::is_unknown(const std::string& name) const {
  const auto& unknown = recording_.initial.unknown;
  return std::find(unknown.begin(), unknown.end(), name) != unknown.end();
}

void CauseFinder::exchange_registers(std::span<const char* const> names, double price) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t k = i + 1; k < names.size(); ++k) {
      const auto a = get_register(recording_.initial, names[i]);
      const auto b = get_register(recording_.initial, names[k]);
      if (!a || !b || a == b || is_unknown(names[i]) || is_unknown(names[k])) continue;
      Hint first, second;
      first.kind = second.kind = Hint::Kind::register_value;
      first.name = names[i];
      first.value = *b;
      second.name = names[k];
      second.value = *a;
      add({CauseKind::initial_register,
           fmt::format("{} was {:x} and {} was {:x} at the start, and the state dump has them "
                       "exchanged",
                       names[i], *b, names[k], *a),
           {first, second},
           {{0, 0}, 0},
           std::nullopt,
           price});
    }
  }
}

void CauseFinder::solve_registers() {
  if (!trials_.history_from_start()) return;
  pointers_ = pointed_to();
  std::set<std::string> done;
  for (const LineageSource& s : lineage_) {
    if (s.kind != LineageSource::Kind::reg) continue;
    const std::string name = flow_register_name(static_cast<unsigned>(s.number));
    const bool general =
        std::find(std::begin(kGeneral), std::end(kGeneral), name) != std::end(kGeneral);
    const bool segment =
        std::find(std::begin(kSegments), std::end(kSegments), name) != std::end(kSegments);
    if ((!general && !segment) || !done.insert(name).second) continue;
    solve_register(name, steps_price(s.distance), general);
  }
  if (divergence_.position.instruction > kYoung) return;
  // What an interrupt uses although no instruction names it.
  if (done.insert("esp").second) solve_register("esp", kPerStep, true);
  if (done.insert("ss").second) solve_register("ss", kPerStep, false);
  exchange_registers(kGeneral, kExchanged);
  exchange_registers(kSegments, kExchanged);
}

/// Another value of a byte that the capture showed being read.
void CauseFinder::suspect_byte(PhysAddr byte, std::uint8_t value, unsigned distance,
                               std::size_t step, double price) {
  const auto before = recording_.image.byte(byte);
  if (!before || *before == value || !suspected_bytes_.insert({byte.value, value}).second) return;
  const auto changed = static_cast<unsigned>(*before ^ value);
  // Single bits are tried anyway.
  if ((changed & (changed - 1)) == 0) return;
  add_read_cause(byte, value, distance, step, price);
}

/// The bytes that an instruction read together, as one value.
void CauseFinder::solve_memory(const LineageSource& source) {
  const std::size_t step = source.path.front();
  for (const HistoryAccess& a : history_.accesses(history_.steps()[step])) {
    const std::uint32_t offset = source.address.value - a.address.value;
    if (a.kind != HistoryAccess::Kind::read || offset >= a.size || a.size > 4) continue;
    std::uint64_t value = 0;
    for (std::uint32_t b = a.size; b-- > 0;) {
      value = value << 8 | recording_.image.byte(a.address + b).value_or(0);
    }
    for (const std::uint64_t v : solved_values(value, 8 * a.size, differences_)) {
      const std::uint64_t changed = v ^ value;
      // One wrong byte; several would have to be wrong together.
      if ((changed & ~(std::uint64_t{0xff} << (8 * offset))) != 0) continue;
      suspect_byte(source.address, static_cast<std::uint8_t>(v >> (8 * offset)), source.distance,
                   step, kSolved);
    }
  }
}

void CauseFinder::solve_sources() {
  std::size_t solved = 0;
  for (const LineageSource& s : lineage_) {
    if (s.kind != LineageSource::Kind::memory || s.path.empty() || solved == kMaxSolved) continue;
    solve_memory(s);
    if (solved++ >= kMaxTriedWhole) continue;
    for (unsigned v = 0; v < 256; ++v) {
      suspect_byte(s.address, static_cast<std::uint8_t>(v), s.distance, s.path.front(), kAnyByte);
    }
  }
  const auto& steps = history_.steps();
  unsigned age = 0;
  for (std::size_t i = steps.size(); i-- > 0 && age < kCodeTriedWhole; ++age) {
    for (std::uint32_t b = 0; b < steps[i].length; ++b) {
      const PhysAddr byte = trials_.machine().memory().captured(steps[i].physical + b);
      for (unsigned v = 0; v < 256; ++v) {
        suspect_byte(byte, static_cast<std::uint8_t>(v), age, i, kAnyByte);
      }
    }
  }
}

void CauseFinder::solve_ports() {
  std::set<std::uint64_t> done;
  for (const LineageSource& s : lineage_) {
    if (s.kind != LineageSource::Kind::port || s.number >= schedule_.io_reads.size() ||
        done.size() == kMaxTriedWhole || !done.insert(s.number).second) {
      continue;
    }
    const IoRead& read = schedule_.io_reads[s.number];
    const Position at = history_.steps()[s.path.front()].position;
    for (const std::uint64_t v : solved_values(read.value, 8u * read.size, differences_)) {
      suspect_port(s.number, static_cast<std::uint32_t>(v), at, kSolved + steps_price(s.distance));
    }
    for (unsigned byte = 0; byte < read.size; ++byte) {
      for (std::uint32_t v = 0; v < 256; ++v) {
        const std::uint32_t value = (read.value & ~(0xffu << (8 * byte))) | v << (8 * byte);
        suspect_port(s.number, value, at, kAnyByte + steps_price(s.distance));
      }
    }
  }
}

void CauseFinder::suspect_port(std::uint64_t number, std::uint32_t value, Position at,
                               double price) {
  const IoRead& read = schedule_.io_reads[number];
  const std::uint32_t changed = read.value ^ value;
  const bool single = (changed & (changed - 1)) == 0;
  if (single || !suspected_ports_.insert({number, value}).second) return;
  add_port_cause(read, value, at, price);
}

}  // namespace citcat
