// Memory: what reads of the capture showed wrongly, data and code.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "replay/diagnose/cause_generators.h"
#include "replay/diagnose/cause_hints.h"
#include "replay/diagnose/cause_prices.h"

namespace citcat {
namespace {

std::string misread(std::uint64_t transaction, PhysAddr byte, std::uint8_t read,
                    std::uint8_t captured) {
  return fmt::format("transaction {} read {:02x} at {:08x} and was captured as {:02x}", transaction,
                     read, byte.value, captured);
}

/// Sources of a lineage, nearest first, for which what the bus shows is solved; and instructions
/// before the divergence of whose code every value of every byte is tried.
constexpr std::size_t kMaxSolved = 96, kCodeTriedWhole = 3;

class ReadCauses : private CauseGenerator {
 public:
  using CauseGenerator::CauseGenerator;
  void lone_change();
  void memory_sources();
  void flip_code();
  void solve_sources();

 private:
  void wrong_read(const ExternalWrite& w, PhysAddr byte, std::uint8_t before);
  void wrong_before(const ExternalWrite& w, PhysAddr byte, std::uint8_t before);
  void flip_memory(PhysAddr byte, unsigned distance, std::size_t step);
  void flip_external(PhysAddr byte, std::uint64_t number, unsigned distance);
  void add_read_cause(PhysAddr byte, std::uint8_t read, unsigned distance, std::size_t step,
                      double price);
  void unseen_writes();
  void suspect_byte(PhysAddr byte, std::uint8_t value, unsigned distance, std::size_t step,
                    double price);
  void solve_memory(const LineageSource& source);

  std::set<std::pair<std::uint64_t, std::uint8_t>> suspected_;  ///< bytes and values
};

/// A read showed a single bit other than it had been left: that read is wrong, or what was there
/// before, or a device did it.
void ReadCauses::lone_change() {
  if (c_.divergence().shown) return;
  for (const ExternalWrite& w : c_.schedule().external_writes) {
    if (w.transaction != c_.divergence().transaction) continue;
    for (std::uint32_t i = 0; i < w.data.size(); ++i) {
      const PhysAddr byte = w.address.plus32(i);
      const std::uint8_t before = c_.memory_byte(byte);
      if (std::popcount(static_cast<std::uint8_t>(before ^ w.data[i])) != 1) continue;
      wrong_read(w, byte, before);
      wrong_before(w, byte, before);
      out_.add({CauseKind::external_write,
                fmt::format("another bus master changed {:08x} from {:02x} to {:02x} before "
                            "transaction {}",
                            byte.value, before, w.data[i], w.transaction),
                {external_hint(Hint::Kind::external_write, w, w.data)},
                {w.position, w.transaction},
                std::nullopt,
                kDevice});
    }
  }
}

/// The read that showed the change `w` of `byte` is wrong: nothing changed.
void ReadCauses::wrong_read(const ExternalWrite& w, PhysAddr byte, std::uint8_t before) {
  const std::uint64_t next = c_.next_external(byte, w.transaction);
  const std::uint64_t since = c_.shown().reads_from(byte, w.transaction, next);
  Cause glitch{CauseKind::captured_read,
               misread(w.transaction, byte, before, w.data[byte.minus32(w.address)]),
               {external_hint(Hint::Kind::no_external_write, w, {})},
               {w.position, w.transaction},
               std::nullopt,
               since <= 1 ? kOneGlitch : kSeveralGlitches};
  // The next read then showed what had been there all the time.
  for (const ExternalWrite& back : c_.schedule().external_writes) {
    if (back.transaction == next && back.address == w.address && back.data.size() == 1) {
      glitch.hints.push_back(external_hint(Hint::Kind::no_external_write, back, {}));
      glitch.price = kConfirmed;
    }
  }
  out_.add(std::move(glitch));
}

/// It is right, and what `byte` was before came from a wrong read: the first one of it, or one that
/// showed an earlier external write.
void ReadCauses::wrong_before(const ExternalWrite& w, PhysAddr byte, std::uint8_t before) {
  const std::uint8_t after = w.data[byte.minus32(w.address)];
  std::optional<ExternalWrite> earlier;
  for (const ExternalWrite& other : c_.schedule().external_writes) {
    if (other == w) break;
    if (byte.is_within32(other.address, other.data.size())) earlier = other;
  }
  const std::uint64_t begin = earlier ? earlier->transaction : 0;
  const auto write = c_.shown().last_write(byte, w.transaction);
  const std::uint64_t readings = c_.shown().reads_before(byte, w.transaction, begin);
  if ((write && write->transaction >= begin) || readings == 0) return;
  const std::uint64_t since =
      c_.shown().reads_from(byte, w.transaction, c_.next_external(byte, w.transaction));
  Cause cause;
  cause.price = readings > 1 ? kSeveralGlitches : since > 1 ? kConfirmed : kOneGlitch;
  std::uint64_t blamed = begin;
  if (earlier) {
    std::vector<std::uint8_t> data = earlier->data;
    data[byte.minus32(earlier->address)] = after;
    cause.hints = {external_hint(Hint::Kind::external_write, *earlier, data)};
    cause.start = {earlier->position, earlier->transaction};
  } else {
    const ShownAccess& first = c_.shown().of(byte).front();
    blamed = first.transaction;
    cause.hints = {memory_hint(byte, after, blamed)};
    cause.start = {first.position, first.transaction};
  }
  cause.hints.push_back(external_hint(Hint::Kind::no_external_write, w, {}));
  cause.text = misread(blamed, byte, after, before);
  out_.add(std::move(cause));
}

/// One bit of a byte that the capture showed being read.
void ReadCauses::flip_memory(PhysAddr byte, unsigned distance, std::size_t step) {
  const auto value = c_.recording().image.byte(byte);
  for (unsigned bit = 0; bit < 8 && value; ++bit) {
    add_read_cause(byte, static_cast<std::uint8_t>(*value ^ 1u << bit), distance, step, kOneGlitch);
  }
}

/// A byte that the capture showed being read, and that the program never wrote, was `read`. `price`
/// is what the value asks one to believe where it was read once.
void ReadCauses::add_read_cause(PhysAddr byte, std::uint8_t read, unsigned distance,
                                std::size_t step, double price) {
  const auto& shown = c_.shown().of(byte);
  if (shown.empty() || shown.front().write) return;
  const auto value = c_.recording().image.byte(byte);
  if (!value) return;
  const ShownAccess& first = shown.front();
  std::optional<std::uint8_t> later;
  const std::uint64_t change = c_.next_external(byte, first.transaction, &later);
  const std::uint64_t reads = c_.shown().reads_from(byte, first.transaction, change);
  if (reads > 1) price += kSeveralGlitches - kOneGlitch;
  if (later == read && reads <= 1) price = kConfirmed;
  Cause cause{CauseKind::captured_read,
              misread(first.transaction, byte, read, *value),
              {memory_hint(byte, read, first.transaction)},
              {first.position, first.transaction},
              std::nullopt,
              price + kPerStep * distance};
  if (step < c_.history().steps().size()) {
    cause.near = TrialStart{c_.history().steps()[step].position, kNowhere};
  }
  out_.add(std::move(cause));
}

void ReadCauses::flip_external(PhysAddr byte, std::uint64_t number, unsigned distance) {
  if (number >= c_.schedule().external_writes.size()) return;
  const ExternalWrite& w = c_.schedule().external_writes[number];
  const std::uint32_t offset = byte.minus32(w.address);
  if (offset >= w.data.size()) return;
  std::optional<std::uint8_t> later;
  const std::uint64_t change = c_.next_external(byte, w.transaction, &later);
  const std::uint64_t reads = c_.shown().reads_from(byte, w.transaction, change);
  for (unsigned bit = 0; bit < 8; ++bit) {
    std::vector<std::uint8_t> data = w.data;
    data[offset] = static_cast<std::uint8_t>(data[offset] ^ 1u << bit);
    double price = reads <= 1 ? kOneGlitch : kSeveralGlitches;
    if (later == data[offset] && reads <= 1) price = kConfirmed;
    out_.add({CauseKind::captured_read,
              misread(w.transaction, byte, data[offset], w.data[offset]),
              {external_hint(Hint::Kind::external_write, w, data)},
              {w.position, w.transaction},
              std::nullopt,
              price + kPerStep * distance});
  }
}

void ReadCauses::memory_sources() {
  for (const LineageSource& s : c_.lineage()) {
    if (s.kind == LineageSource::Kind::external) flip_external(s.address, s.number, s.distance);
    if (s.kind != LineageSource::Kind::memory || s.path.empty()) continue;
    flip_memory(s.address, s.distance, s.path.front());
  }
  unseen_writes();
}

/// Values that were only moved: where they were read, memory held what the bus shows now.
void ReadCauses::unseen_writes() {
  for (const std::vector<MovedByte>& moved : c_.moved()) {
    if (moved.empty()) continue;
    std::vector<MovedByte> bytes = moved;
    std::sort(bytes.begin(), bytes.end(),
              [](const MovedByte& a, const MovedByte& b) { return a.from.value < b.from.value; });
    Cause cause{CauseKind::external_write, "", {}, {}, std::nullopt, 2};
    std::size_t first_step = bytes.front().step;
    for (const MovedByte& b : bytes) first_step = std::min(first_step, b.step);
    const Position position = c_.history().steps()[first_step].position;
    std::uint64_t transaction = c_.divergence().transaction;
    for (const ShownAccess& access : c_.shown().of(bytes.front().from)) {
      if (!access.write && access.position.instruction <= position.instruction) {
        transaction = access.transaction;
      }
    }
    for (const MovedByte& b : bytes) {
      if (!cause.hints.empty()) {
        Hint& last = cause.hints.back();
        const std::uint64_t end = last.address.value + last.data.size();
        if (b.from.value < end) continue;
        if (b.from.value == end) {
          last.data.push_back(b.shown);
          continue;
        }
      }
      Hint hint;
      hint.kind = Hint::Kind::external_write;
      hint.transaction = transaction;
      hint.position = position;
      hint.address = b.from;
      hint.data = {b.shown};
      cause.hints.push_back(hint);
    }
    const Hint& front = cause.hints.front();
    cause.text = fmt::format("another bus master wrote {} at {:08x} before instruction {}",
                             hex_text(front.data), front.address.value, position.instruction);
    cause.start = {position, transaction};
    out_.add(std::move(cause));
  }
}

/// Instructions that ran last, as they may have been in memory.
void ReadCauses::flip_code() {
  const auto& steps = c_.history().steps();
  constexpr std::size_t kLastInstructions = 64;
  std::set<std::uint64_t> done;
  unsigned age = 0;
  for (std::size_t i = steps.size(); i-- > 0 && age < kLastInstructions; ++age) {
    for (std::uint32_t b = 0; b < steps[i].length; ++b) {
      const PhysAddr byte = c_.memory().captured(steps[i].physical.plus32(b));
      if (done.insert(byte.value).second) flip_memory(byte, age, i);
    }
  }
}

/// Another value of a byte that the capture showed being read.
void ReadCauses::suspect_byte(PhysAddr byte, std::uint8_t value, unsigned distance,
                              std::size_t step, double price) {
  const auto before = c_.recording().image.byte(byte);
  if (!before || *before == value || !suspected_.insert({byte.value, value}).second) return;
  const auto changed = static_cast<unsigned>(*before ^ value);
  // Single bits are tried anyway.
  if ((changed & (changed - 1)) == 0) return;
  add_read_cause(byte, value, distance, step, price);
}

/// The bytes that an instruction read together, as one value.
void ReadCauses::solve_memory(const LineageSource& source) {
  const std::size_t step = source.path.front();
  for (const HistoryAccess& a : c_.history().accesses(c_.history().steps()[step])) {
    const std::uint32_t offset = source.address.minus32(a.address);
    if (a.kind != HistoryAccess::Kind::read || offset >= a.size || a.size > 4) continue;
    std::uint64_t value = 0;
    for (std::uint32_t b = a.size; b-- > 0;) {
      value = value << 8 | c_.recording().image.byte(a.address.plus32(b)).value_or(0);
    }
    for (const std::uint64_t v : solved_values(value, 8 * a.size, c_.differences())) {
      const std::uint64_t changed = v ^ value;
      // One wrong byte; several would have to be wrong together.
      if ((changed & ~(std::uint64_t{0xff} << (8 * offset))) != 0) continue;
      suspect_byte(source.address, static_cast<std::uint8_t>(v >> (8 * offset)), source.distance,
                   step, kSolvedValue);
    }
  }
}

void ReadCauses::solve_sources() {
  std::size_t solved = 0;
  for (const LineageSource& s : c_.lineage()) {
    if (s.kind != LineageSource::Kind::memory || s.path.empty() || solved == kMaxSolved) continue;
    solve_memory(s);
    if (solved++ >= kMaxTriedWhole) continue;
    for (unsigned v = 0; v < 256; ++v) {
      suspect_byte(s.address, static_cast<std::uint8_t>(v), s.distance, s.path.front(), kAnyByte);
    }
  }
  const auto& steps = c_.history().steps();
  unsigned age = 0;
  for (std::size_t i = steps.size(); i-- > 0 && age < kCodeTriedWhole; ++age) {
    for (std::uint32_t b = 0; b < steps[i].length; ++b) {
      const PhysAddr byte = c_.memory().captured(steps[i].physical.plus32(b));
      for (unsigned v = 0; v < 256; ++v) {
        suspect_byte(byte, static_cast<std::uint8_t>(v), age, i, kAnyByte);
      }
    }
  }
}

}  // namespace

void lone_changes(const CauseContext& context, CauseList& out) {
  ReadCauses(context, out).lone_change();
}

void read_values(const CauseContext& context, CauseList& out) {
  ReadCauses(context, out).memory_sources();
}

void read_code(const CauseContext& context, CauseList& out) {
  ReadCauses(context, out).flip_code();
}

void solved_reads(const CauseContext& context, CauseList& out) {
  ReadCauses(context, out).solve_sources();
}

}  // namespace citcat
