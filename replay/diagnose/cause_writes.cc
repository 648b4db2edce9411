// Memory: what writes of the capture showed wrongly, or not at all.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <span>

#include "replay/diagnose/cause_generators.h"
#include "replay/diagnose/cause_hints.h"
#include "replay/diagnose/cause_prices.h"

namespace citcat {
namespace {

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

class WriteCauses : private CauseGenerator {
 public:
  using CauseGenerator::CauseGenerator;
  void captured_value();
  void other_address();
  void missing_write();
  void extra_write();

 private:
  using Piece = std::pair<std::uint64_t, std::uint32_t>;  ///< address and size
  std::set<Piece> pieces_of_last_step() const;
  void add_missing(std::uint64_t address, std::uint32_t size, std::uint64_t before);
  void missing_write_backs();
  bool is_second_write_back(const BusTransaction& t) const;
  double write_price(const BusTransaction& shown, std::span<const std::uint8_t> ours) const;
};

/// What a write captured as something else would cost to believe: later reads of those bytes tell.
double WriteCauses::write_price(const BusTransaction& shown,
                                std::span<const std::uint8_t> ours) const {
  double price = different_bits(shown.bytes(), ours) == 1    ? kNeverSeenAgain
                 : different_bytes(shown.bytes(), ours) == 1 ? kOneByte
                                                             : kSeveralGlitches;
  for (std::uint32_t i = 0; i < shown.size; ++i) {
    if (shown.data[i] == ours[i]) continue;
    const PhysAddr byte = shown.address.plus32(i);
    std::optional<std::uint8_t> later;
    const std::uint64_t change = c_.next_external(byte, shown.index, &later);
    if (c_.shown().reads_from(byte, shown.index + 1, change) != 0) return kContradicted;
    const std::uint64_t reads = c_.shown().reads_from(byte, shown.index + 1, kNowhere);
    if (reads != 0 && later == ours[i]) price = std::min(price, kConfirmed);
  }
  return price;
}

/// The line that `t` writes back is written back next to it, too, and nothing brings it into the
/// cache in between: one of the two cannot have been, whatever the bytes were.
bool WriteCauses::is_second_write_back(const BusTransaction& t) const {
  // A line that another bus master makes the processor write back stays in the cache.
  if (!t.has(kWriteBack) || t.has(kSnoop)) return false;
  const auto& shown = c_.shown().of(t.address);
  const auto here = std::find_if(shown.begin(), shown.end(),
                                 [&](const ShownAccess& a) { return a.transaction == t.index; });
  if (here == shown.end()) return false;
  const auto gives_up = [](const ShownAccess& a) { return a.write && !a.snoop; };
  const bool before = here != shown.begin() && gives_up(*std::prev(here));
  const bool after = std::next(here) != shown.end() && gives_up(*std::next(here));
  return before || after;
}

void WriteCauses::captured_value() {
  if (c_.mismatches().empty()) return;
  const BusTransaction& t = *c_.divergence().shown;
  std::vector<std::uint8_t> ours(t.size);
  for (std::uint32_t i = 0; i < t.size; ++i) ours[i] = c_.memory_byte(t.address.plus32(i));
  Hint hint = write_hint(Hint::Kind::captured_write, t, t.address, ours);
  hint.write_back = t.has(kWriteBack);
  out_.add(
      {CauseKind::captured_write,
       fmt::format("transaction {} wrote {} at {:08x} and was captured as {}", t.index,
                   hex_text(ours), t.address.value, hex_text(t.bytes())),
       {hint},
       {c_.divergence().position, t.index},
       std::nullopt,
       is_second_write_back(t) ? std::max(kDevice, write_price(t, ours)) : write_price(t, ours)});
}

/// The replay wrote the same bytes to an address that differs in one bit.
void WriteCauses::other_address() {
  if (!c_.divergence().shown || c_.divergence().shown->op != BusOp::data_write) return;
  const BusTransaction& t = *c_.divergence().shown;
  const auto& steps = c_.history().steps();
  for (std::size_t i = steps.size() - std::min<std::size_t>(2, steps.size()); i < steps.size();
       ++i) {
    for (const HistoryAccess& a : c_.history().accesses(steps[i])) {
      if (a.kind != HistoryAccess::Kind::write || a.size < t.size) continue;
      for (std::uint32_t at = 0; at + t.size <= a.size; ++at) {
        const PhysAddr address = a.address.plus32(at);
        if (std::popcount(address.value ^ t.address.value) != 1) continue;
        out_.add({CauseKind::captured_write,
                  fmt::format("transaction {} wrote to {:08x} and was captured at {:08x}", t.index,
                              address.value, t.address.value),
                  {write_hint(Hint::Kind::captured_write, t, address,
                              {t.data.begin(), t.data.begin() + t.size})},
                  {c_.divergence().position, t.index},
                  std::nullopt,
                  kOneGlitch});
      }
    }
  }
}

/// The last store of the replay, or a bus word of it, is not in the capture.
void WriteCauses::missing_write() {
  if (c_.history().steps().empty()) return;
  // The write the replay expected next is of the same instruction, or the instruction makes no
  // more.
  const auto& shown = c_.divergence().shown;
  const bool same_instruction =
      shown && shown->op == BusOp::data_write &&
      (!shown->has(kPositionKnown) ||
       shown->position.instruction == c_.divergence().position.instruction);
  const std::uint64_t before =
      same_instruction ? shown->index : c_.transaction_after(c_.divergence().position);
  for (const auto& [address, size] : pieces_of_last_step()) add_missing(address, size, before);
  missing_write_backs();
}

/// Stores of the replay's last step, by address and size. A store may be split at bus words; which
/// of them is missing is tried.
std::set<WriteCauses::Piece> WriteCauses::pieces_of_last_step() const {
  std::set<Piece> pieces;
  for (const HistoryAccess& a : c_.history().accesses(c_.history().steps().back())) {
    if (a.kind != HistoryAccess::Kind::write || a.size > kMaxTransactionBytes) continue;
    pieces.insert({a.address.value, a.size});
    const std::uint32_t bus = std::max(c_.recording().bus.bus_bytes, 1u);
    for (std::uint64_t at = a.address.value; at < a.address.value + a.size;) {
      const std::uint64_t end = std::min(at / bus * bus + bus, a.address.value + a.size);
      pieces.insert({at, static_cast<std::uint32_t>(end - at)});
      at = end;
    }
  }
  return pieces;
}

/// The capture lacks this store of the replay before a transaction.
void WriteCauses::add_missing(std::uint64_t address, std::uint32_t size, std::uint64_t before) {
  std::vector<std::uint8_t> data(size);
  double price = kNeverSeenAgain;
  for (std::uint32_t i = 0; i < size; ++i) {
    const PhysAddr byte{address + i};
    data[i] = c_.memory_byte(byte);
    std::optional<std::uint8_t> later;
    const std::uint64_t change = c_.next_external(byte, before - 1, &later);
    const bool contradicted = c_.shown().reads_from(byte, before, change) != 0;
    if (contradicted && price < kContradicted) price = kContradicted - 1;
    if (later == data[i]) price = kConfirmed;
  }
  Hint hint;
  hint.kind = Hint::Kind::added_captured_write;
  hint.transaction = before;
  hint.position = c_.divergence().position;
  hint.address.value = address;
  hint.data = data;
  out_.add({CauseKind::missing_write,
            fmt::format("the capture lacks a write of {} to {:08x} before transaction {}",
                        hex_text(data), address, before),
            {hint},
            {c_.divergence().position, before},
            std::nullopt,
            price});
}

/// A line that came back from memory as the replay's stores left it was written back unseen.
void WriteCauses::missing_write_backs() {
  if (!c_.divergence().shown || c_.recording().bus.form != CacheForm::write_back) return;
  for (const ExternalWrite& w : c_.schedule().external_writes) {
    if (w.transaction != c_.divergence().transaction || w.data.size() > kMaxTransactionBytes) {
      continue;
    }
    Hint hint = external_hint(Hint::Kind::added_captured_write, w, w.data);
    hint.write_back = true;
    out_.add({CauseKind::missing_write,
              fmt::format("the capture lacks a write-back of {:08x} before transaction {}",
                          w.address.value, w.transaction),
              {hint, external_hint(Hint::Kind::no_external_write, w, {})},
              {w.position, w.transaction},
              std::nullopt,
              kConfirmed});
  }
}

void WriteCauses::extra_write() {
  if (!c_.divergence().shown || c_.divergence().shown->op != BusOp::data_write) return;
  const BusTransaction& t = *c_.divergence().shown;
  out_.add({CauseKind::extra_write,
            fmt::format("transaction {} was captured as a write to {:08x}, but was not one",
                        t.index, t.address.value),
            {write_hint(Hint::Kind::no_captured_write, t, t.address,
                        {t.data.begin(), t.data.begin() + (t.has(kWriteBack) ? 0 : t.size)})},
            {c_.divergence().position, t.index},
            std::nullopt,
            is_second_write_back(t) ? kConfirmed : kDevice});
}

}  // namespace

void captured_writes(const CauseContext& context, CauseList& out) {
  WriteCauses(context, out).captured_value();
}

void write_addresses(const CauseContext& context, CauseList& out) {
  WriteCauses(context, out).other_address();
}

void missing_writes(const CauseContext& context, CauseList& out) {
  WriteCauses(context, out).missing_write();
}

void extra_writes(const CauseContext& context, CauseList& out) {
  WriteCauses(context, out).extra_write();
}

}  // namespace citcat
