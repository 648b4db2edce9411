// Memory: what reads and writes of the capture showed wrongly or not at all.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>

#include "replay/diagnose/cause_finder.h"

namespace citcat {
namespace {

constexpr std::uint64_t kEnd = ~std::uint64_t{0};

// Prices. Several transactions that agree on a value would all have to be wrong; what later traffic
// contradicts outright costs more than any chain of lesser doubts.
constexpr double kConfirmed = 0.5;  ///< later traffic shows what the cause predicts
constexpr double kOneGlitch = 1;
constexpr double kNeverSeenAgain = 1.2;  ///< nothing speaks for it or against it
constexpr double kOneByte = 1.7;         ///< several bits of one byte, and never seen again
constexpr double kDevice = 4;
constexpr double kSeveralGlitches = 6;
constexpr double kContradicted = 9;
/// For each step between the cause and where it showed itself.
constexpr double kPerStep = 0.02;

unsigned different_bits(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    bits += static_cast<unsigned>(std::popcount(static_cast<std::uint8_t>(a[i] ^ b[i])));
  }
  return bits;
}

unsigned different_bytes(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  unsigned bytes = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) bytes += a[i] != b[i] ? 1u : 0u;
  return bytes;
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t b : bytes) text += fmt::format("{:02x}", b);
  return text;
}

std::string misread(std::uint64_t transaction, PhysAddr byte, std::uint8_t read,
                    std::uint8_t captured) {
  return fmt::format("transaction {} read {:02x} at {:08x} and was captured as {:02x}", transaction,
                     read, byte.value, captured);
}

Hint memory_hint(PhysAddr byte, std::uint8_t value, std::uint64_t transaction) {
  Hint hint;
  hint.kind = Hint::Kind::memory;
  hint.address = byte;
  hint.data = {value};
  hint.transaction = transaction;
  return hint;
}

Hint write_hint(Hint::Kind kind, const BusTransaction& t, PhysAddr address,
                std::vector<std::uint8_t> data) {
  Hint hint;
  hint.kind = kind;
  hint.transaction = t.index;
  hint.position = t.position;
  hint.address = address;
  hint.data = std::move(data);
  return hint;
}

Hint external_hint(Hint::Kind kind, const ExternalWrite& w, std::vector<std::uint8_t> data) {
  Hint hint;
  hint.kind = kind;
  hint.transaction = w.transaction;
  hint.position = w.position;
  hint.address = w.address;
  hint.data = std::move(data);
  return hint;
}

}  // namespace

/// The first external write to `byte` after `transaction`, and what it left there.
std::uint64_t CauseFinder::next_external(PhysAddr byte, std::uint64_t transaction,
                                         std::optional<std::uint8_t>* value) const {
  for (const ExternalWrite& w : schedule_.external_writes) {
    const std::uint32_t offset = byte.value - w.address.value;
    if (w.transaction <= transaction || offset >= w.data.size()) continue;
    if (value != nullptr) *value = w.data[offset];
    return w.transaction;
  }
  return kEnd;
}

/// A read showed a single bit other than it had been left: that read is wrong, or what was there
/// before, or a device did it.
void CauseFinder::lone_change() {
  if (divergence_.shown) return;
  for (const ExternalWrite& w : schedule_.external_writes) {
    if (w.transaction != divergence_.transaction) continue;
    for (std::uint32_t i = 0; i < w.data.size(); ++i) {
      const PhysAddr byte = w.address + i;
      const std::uint8_t before = memory_byte(byte);
      if (std::popcount(static_cast<std::uint8_t>(before ^ w.data[i])) != 1) continue;
      wrong_read(w, byte, before);
      wrong_before(w, byte, before);
      add({CauseKind::external_write,
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
void CauseFinder::wrong_read(const ExternalWrite& w, PhysAddr byte, std::uint8_t before) {
  const std::uint64_t next = next_external(byte, w.transaction);
  const std::uint64_t since = index_->reads_from(byte, w.transaction, next);
  Cause glitch{CauseKind::captured_read,
               misread(w.transaction, byte, before, w.data[byte.value - w.address.value]),
               {external_hint(Hint::Kind::no_external_write, w, {})},
               {w.position, w.transaction},
               std::nullopt,
               since <= 1 ? kOneGlitch : kSeveralGlitches};
  // The next read then showed what had been there all the time.
  for (const ExternalWrite& back : schedule_.external_writes) {
    if (back.transaction == next && back.address == w.address && back.data.size() == 1) {
      glitch.hints.push_back(external_hint(Hint::Kind::no_external_write, back, {}));
      glitch.price = kConfirmed;
    }
  }
  add(std::move(glitch));
}

/// It is right, and what `byte` was before came from a wrong read: the first one of it, or one that
/// showed an earlier external write.
void CauseFinder::wrong_before(const ExternalWrite& w, PhysAddr byte, std::uint8_t before) {
  const std::uint8_t after = w.data[byte.value - w.address.value];
  const ExternalWrite* earlier = nullptr;
  for (const ExternalWrite& other : schedule_.external_writes) {
    if (&other == &w) break;
    if (byte.value - other.address.value < other.data.size()) earlier = &other;
  }
  const std::uint64_t begin = earlier != nullptr ? earlier->transaction : 0;
  const auto write = index_->last_write(byte, w.transaction);
  const std::uint64_t readings = index_->reads_before(byte, w.transaction, begin);
  if ((write && write->transaction >= begin) || readings == 0) return;
  const std::uint64_t since =
      index_->reads_from(byte, w.transaction, next_external(byte, w.transaction));
  Cause cause;
  cause.price = readings > 1 ? kSeveralGlitches : since > 1 ? kConfirmed : kOneGlitch;
  std::uint64_t blamed = begin;
  if (earlier != nullptr) {
    std::vector<std::uint8_t> data = earlier->data;
    data[byte.value - earlier->address.value] = after;
    cause.hints = {external_hint(Hint::Kind::external_write, *earlier, data)};
    cause.start = {earlier->position, earlier->transaction};
  } else {
    const ShownAccess& first = index_->of(byte).front();
    blamed = first.transaction;
    cause.hints = {memory_hint(byte, after, blamed)};
    cause.start = {first.position, first.transaction};
  }
  cause.hints.push_back(external_hint(Hint::Kind::no_external_write, w, {}));
  cause.text = misread(blamed, byte, after, before);
  add(std::move(cause));
}

/// What a write captured as something else would cost to believe: later reads of those bytes tell.
double CauseFinder::write_price(const BusTransaction& shown,
                                std::span<const std::uint8_t> ours) const {
  double price = different_bits(shown.bytes(), ours) == 1    ? kNeverSeenAgain
                 : different_bytes(shown.bytes(), ours) == 1 ? kOneByte
                                                             : kSeveralGlitches;
  for (std::uint32_t i = 0; i < shown.size; ++i) {
    if (shown.data[i] == ours[i]) continue;
    const PhysAddr byte = shown.address + i;
    std::optional<std::uint8_t> later;
    const std::uint64_t change = next_external(byte, shown.index, &later);
    if (index_->reads_from(byte, shown.index + 1, change) != 0) return kContradicted;
    const std::uint64_t reads = index_->reads_from(byte, shown.index + 1, kEnd);
    if (reads != 0 && later == ours[i]) price = std::min(price, kConfirmed);
  }
  return price;
}

/// The line that `t` writes back is written back next to it, too, and nothing brings it into the
/// cache in between: one of the two cannot have been, whatever the bytes were.
bool CauseFinder::is_second_write_back(const BusTransaction& t) const {
  // A line that another bus master makes the processor write back stays in the cache.
  if (!t.has(kWriteBack) || t.has(kSnoop)) return false;
  const auto& shown = index_->of(t.address);
  const auto here = std::find_if(shown.begin(), shown.end(),
                                 [&](const ShownAccess& a) { return a.transaction == t.index; });
  if (here == shown.end()) return false;
  const auto gives_up = [](const ShownAccess& a) { return a.write && !a.snoop; };
  const bool before = here != shown.begin() && gives_up(*std::prev(here));
  const bool after = std::next(here) != shown.end() && gives_up(*std::next(here));
  return before || after;
}

void CauseFinder::captured_value() {
  if (mismatches_.empty()) return;
  const BusTransaction& t = *divergence_.shown;
  std::vector<std::uint8_t> ours(t.size);
  for (std::uint32_t i = 0; i < t.size; ++i) ours[i] = memory_byte(t.address + i);
  Hint hint = write_hint(Hint::Kind::captured_write, t, t.address, ours);
  hint.write_back = t.has(kWriteBack);
  add({CauseKind::captured_write,
       fmt::format("transaction {} wrote {} at {:08x} and was captured as {}", t.index, hex(ours),
                   t.address.value, hex(t.bytes())),
       {hint},
       {divergence_.position, t.index},
       std::nullopt,
       is_second_write_back(t) ? std::max(kDevice, write_price(t, ours)) : write_price(t, ours)});
}

/// The replay wrote the same bytes to an address that differs in one bit.
void CauseFinder::other_address() {
  if (!divergence_.shown || divergence_.shown->op != BusOp::data_write) return;
  const BusTransaction& t = *divergence_.shown;
  const auto& steps = history_.steps();
  for (std::size_t i = steps.size() - std::min<std::size_t>(2, steps.size()); i < steps.size();
       ++i) {
    for (const HistoryAccess& a : history_.accesses(steps[i])) {
      if (a.kind != HistoryAccess::Kind::write || a.size < t.size) continue;
      for (std::uint32_t at = 0; at + t.size <= a.size; ++at) {
        const PhysAddr address = a.address + at;
        if (std::popcount(address.value ^ t.address.value) != 1) continue;
        add({CauseKind::captured_write,
             fmt::format("transaction {} wrote to {:08x} and was captured at {:08x}", t.index,
                         address.value, t.address.value),
             {write_hint(Hint::Kind::captured_write, t, address,
                         {t.data.begin(), t.data.begin() + t.size})},
             {divergence_.position, t.index},
             std::nullopt,
             kOneGlitch});
      }
    }
  }
}

/// The last store of the replay, or a bus word of it, is not in the capture.
void CauseFinder::missing_write() {
  const auto& steps = history_.steps();
  if (steps.empty()) return;
  // The write the replay expected next is of the same instruction, or the instruction makes no
  // more.
  const auto& shown = divergence_.shown;
  const bool same_instruction = shown && shown->op == BusOp::data_write &&
                                (!shown->has(kPositionKnown) ||
                                 shown->position.instruction == divergence_.position.instruction);
  const std::uint64_t before =
      same_instruction ? shown->index : transaction_after(divergence_.position);
  std::set<std::pair<std::uint32_t, std::uint32_t>> pieces;
  // A store may be split at bus words; which of them is missing is tried.
  for (const HistoryAccess& a : history_.accesses(steps.back())) {
    if (a.kind != HistoryAccess::Kind::write || a.size > kMaxTransactionBytes) continue;
    pieces.insert({a.address.value, a.size});
    const std::uint32_t bus = std::max(recording_.bus.bus_bytes, 1u);
    for (std::uint32_t at = a.address.value; at < a.address.value + a.size;) {
      const std::uint32_t end = std::min(at / bus * bus + bus, a.address.value + a.size);
      pieces.insert({at, end - at});
      at = end;
    }
  }
  for (const auto& [address, size] : pieces) {
    std::vector<std::uint8_t> data(size);
    double price = kNeverSeenAgain;
    for (std::uint32_t i = 0; i < size; ++i) {
      const PhysAddr byte{address + i};
      data[i] = memory_byte(byte);
      std::optional<std::uint8_t> later;
      const std::uint64_t change = next_external(byte, before - 1, &later);
      const bool contradicted = index_->reads_from(byte, before, change) != 0;
      if (contradicted && price < kContradicted) price = kContradicted - 1;
      if (later == data[i]) price = kConfirmed;
    }
    Hint hint;
    hint.kind = Hint::Kind::added_captured_write;
    hint.transaction = before;
    hint.position = divergence_.position;
    hint.address.value = address;
    hint.data = data;
    add({CauseKind::missing_write,
         fmt::format("the capture lacks a write of {} to {:08x} before transaction {}", hex(data),
                     address, before),
         {hint},
         {divergence_.position, before},
         std::nullopt,
         price});
  }
  // A line that came back from memory as the replay's stores left it was written back unseen.
  for (const ExternalWrite& w : schedule_.external_writes) {
    if (w.transaction != divergence_.transaction || !divergence_.shown ||
        recording_.bus.form != CacheForm::write_back || w.data.size() > kMaxTransactionBytes) {
      continue;
    }
    Hint hint = external_hint(Hint::Kind::added_captured_write, w, w.data);
    hint.write_back = true;
    Cause cause{CauseKind::missing_write,
                fmt::format("the capture lacks a write-back of {:08x} before transaction {}",
                            w.address.value, w.transaction),
                {hint, external_hint(Hint::Kind::no_external_write, w, {})},
                {w.position, w.transaction},
                std::nullopt,
                kConfirmed};
    add(std::move(cause));
  }
}

void CauseFinder::extra_write() {
  if (!divergence_.shown || divergence_.shown->op != BusOp::data_write) return;
  const BusTransaction& t = *divergence_.shown;
  add({CauseKind::extra_write,
       fmt::format("transaction {}, a write to {:08x}, was none", t.index, t.address.value),
       {write_hint(Hint::Kind::no_captured_write, t, t.address,
                   {t.data.begin(), t.data.begin() + (t.has(kWriteBack) ? 0 : t.size)})},
       {divergence_.position, t.index},
       std::nullopt,
       is_second_write_back(t) ? kConfirmed : kDevice});
}

/// One bit of a byte that the capture showed being read.
void CauseFinder::flip_memory(PhysAddr byte, unsigned distance, std::size_t step) {
  const auto value = recording_.image.byte(byte);
  for (unsigned bit = 0; bit < 8 && value; ++bit) {
    add_read_cause(byte, static_cast<std::uint8_t>(*value ^ 1u << bit), distance, step, kOneGlitch);
  }
}

/// A byte that the capture showed being read, and that the program never wrote, was `read`. `price`
/// is what the value asks one to believe where it was read once.
void CauseFinder::add_read_cause(PhysAddr byte, std::uint8_t read, unsigned distance,
                                 std::size_t step, double price) {
  const auto& shown = index_->of(byte);
  if (shown.empty() || shown.front().write) return;
  const auto value = recording_.image.byte(byte);
  if (!value) return;
  const ShownAccess& first = shown.front();
  std::optional<std::uint8_t> later;
  const std::uint64_t change = next_external(byte, first.transaction, &later);
  const std::uint64_t reads = index_->reads_from(byte, first.transaction, change);
  if (reads > 1) price += kSeveralGlitches - kOneGlitch;
  if (later == read && reads <= 1) price = kConfirmed;
  Cause cause{CauseKind::captured_read,
              misread(first.transaction, byte, read, *value),
              {memory_hint(byte, read, first.transaction)},
              {first.position, first.transaction},
              std::nullopt,
              price + kPerStep * distance};
  if (step < history_.steps().size()) {
    cause.near = TrialStart{history_.steps()[step].position, kEnd};
  }
  add(std::move(cause));
}

void CauseFinder::flip_external(PhysAddr byte, std::uint64_t number, unsigned distance) {
  if (number >= schedule_.external_writes.size()) return;
  const ExternalWrite& w = schedule_.external_writes[number];
  const std::uint32_t offset = byte.value - w.address.value;
  if (offset >= w.data.size()) return;
  std::optional<std::uint8_t> later;
  const std::uint64_t change = next_external(byte, w.transaction, &later);
  const std::uint64_t reads = index_->reads_from(byte, w.transaction, change);
  for (unsigned bit = 0; bit < 8; ++bit) {
    std::vector<std::uint8_t> data = w.data;
    data[offset] = static_cast<std::uint8_t>(data[offset] ^ 1u << bit);
    double price = reads <= 1 ? kOneGlitch : kSeveralGlitches;
    if (later == data[offset] && reads <= 1) price = kConfirmed;
    add({CauseKind::captured_read,
         misread(w.transaction, byte, data[offset], w.data[offset]),
         {external_hint(Hint::Kind::external_write, w, data)},
         {w.position, w.transaction},
         std::nullopt,
         price + kPerStep * distance});
  }
}

void CauseFinder::memory_sources() {
  for (const LineageSource& s : lineage_) {
    if (s.kind == LineageSource::Kind::external) flip_external(s.address, s.number, s.distance);
    if (s.kind != LineageSource::Kind::memory || s.path.empty()) continue;
    flip_memory(s.address, s.distance, s.path.front());
  }
  unseen_writes();
}

/// Values that were only moved: where they were read, memory held what the bus shows now.
void CauseFinder::unseen_writes() {
  for (const std::vector<MovedByte>& moved : moved_) {
    if (moved.empty()) continue;
    std::vector<MovedByte> bytes = moved;
    std::sort(bytes.begin(), bytes.end(),
              [](const MovedByte& a, const MovedByte& b) { return a.from.value < b.from.value; });
    Cause cause{CauseKind::external_write, "", {}, {}, std::nullopt, 2};
    std::size_t first_step = bytes.front().step;
    for (const MovedByte& b : bytes) first_step = std::min(first_step, b.step);
    const Position position = history_.steps()[first_step].position;
    std::uint64_t transaction = divergence_.transaction;
    for (const ShownAccess& access : index_->of(bytes.front().from)) {
      if (!access.write && access.position.instruction <= position.instruction) {
        transaction = access.transaction;
      }
    }
    for (const MovedByte& b : bytes) {
      if (!cause.hints.empty()) {
        Hint& last = cause.hints.back();
        const std::uint32_t end = last.address.value + static_cast<std::uint32_t>(last.data.size());
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
                             hex(front.data), front.address.value, position.instruction);
    cause.start = {position, transaction};
    add(std::move(cause));
  }
}

/// Instructions that ran last, as they may have been in memory.
void CauseFinder::flip_code() {
  const auto& steps = history_.steps();
  constexpr std::size_t kLastInstructions = 64;
  std::set<std::uint32_t> done;
  unsigned age = 0;
  for (std::size_t i = steps.size(); i-- > 0 && age < kLastInstructions; ++age) {
    for (std::uint32_t b = 0; b < steps[i].length; ++b) {
      const PhysAddr byte = trials_.machine().memory().captured(steps[i].physical + b);
      if (done.insert(byte.value).second) flip_memory(byte, age, i);
    }
  }
}

/// An instruction that was overwritten shortly before it ran: the processor may have fetched what
/// was there before.
void CauseFinder::stale_code() {
  const auto& steps = history_.steps();
  constexpr std::size_t kWindow = 64;
  const std::size_t begin = steps.size() - std::min(kWindow, steps.size());
  for (std::size_t i = begin; i < steps.size(); ++i) {
    for (std::size_t w = begin; w < i; ++w) {
      for (const HistoryAccess& a : history_.accesses(steps[w])) {
        const bool overwrites = a.kind == HistoryAccess::Kind::write &&
                                a.address.value - steps[i].physical.value < steps[i].length;
        const auto old = recording_.image.byte(a.address);
        if (!overwrites || !old) continue;
        std::vector<std::uint8_t> now, before;
        for (std::uint32_t b = 0; b < a.size; ++b) {
          now.push_back(memory_byte(a.address + b));
          before.push_back(recording_.image.byte(a.address + b).value_or(now.back()));
        }
        Hint stale, fresh;
        stale.kind = fresh.kind = Hint::Kind::external_write;
        stale.address = fresh.address = a.address;
        stale.position = steps[i].position;
        fresh.position = {steps[i].position.instruction + 1, 0};
        stale.data = before;
        fresh.data = now;
        stale.transaction = fresh.transaction = divergence_.transaction;
        fresh.transaction += 1;
        add({CauseKind::stale_code,
             fmt::format("the instruction at {:08x} had been fetched before instruction {} wrote "
                         "to it",
                         steps[i].linear, steps[w].position.instruction),
             {stale, fresh},
             {steps[w].position, kEnd},
             std::nullopt,
             1.5});
      }
    }
  }
}

}  // namespace citcat
