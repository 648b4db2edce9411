// An SMI whose stores the capture lacks.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "replay/diagnose/cause_generators.h"
#include "replay/diagnose/cause_prices.h"

namespace citcat {
namespace {

// Intel SDM vol. 3, 34.4: where an SMI's handler begins and the state is saved, from SMBASE.
constexpr std::uint32_t kHandler = 0x8000, kSaveBegin = 0xfc00, kSaveEnd = 0x10000,
                        kRevision = 0xfefc;
constexpr const char* kSmbase = "smbase";
/// Transactions before and from the divergence among which the fetch of a handler is looked for: a
/// processor may have fetched what it did not execute, so that only the handler's first store need
/// be the difference.
constexpr std::size_t kLookedBack = 64, kLookedAt = 4;
/// Instructions before it that an SMI may be at where no count tells.
constexpr std::size_t kMaxPlaces = 8;
constexpr double kSmi = 1.2;

class SmiCauses : private CauseGenerator {
 public:
  using CauseGenerator::CauseGenerator;
  void unseen_smi();

 private:
  std::optional<std::uint32_t> smbase_of(const BusTransaction& fetch) const;
  std::set<Position> smi_places(const BusTransaction& fetch) const;
  Cause smi_cause(Position place, const BusTransaction& fetch, std::uint32_t base,
                  std::uint8_t revision) const;
  std::vector<Hint> smi_stores(const Cause& cause, Position place, const BusTransaction& fetch,
                               std::uint32_t base, bool as_read) const;
  void suspect_smi(Position place, const BusTransaction& fetch, std::uint32_t base);
};

/// SMBASE, if this is the first fetch of an SMI's handler: where the replay has it, what it is
/// after reset, and where nothing tells it, any 32 KiB that a processor allows.
std::optional<std::uint32_t> SmiCauses::smbase_of(const BusTransaction& fetch) const {
  if (fetch.op != BusOp::code_read) return std::nullopt;
  const CpuState now = c_.machine().save();
  for (const std::uint32_t base : {now.smbase, c_.recording().initial.smbase, kResetSmbase}) {
    if (base + kHandler - fetch.address.low32() < fetch.size) return base;
  }
  if (!get_register(c_.recording().initial, kSmbase)) return std::nullopt;
  if (fetch.address.value % kHandler != 0 || fetch.address.value < kHandler) return std::nullopt;
  return fetch.address.low32() - kHandler;
}

/// Code is fetched where the handler of an SMI begins, and the replay goes elsewhere: an SMI whose
/// stores were not captured, as the processor makes them.
void SmiCauses::unseen_smi() {
  if (c_.machine().save().in_smm) return;
  if (c_.upcoming().empty()) return;
  const std::uint64_t back = std::min<std::uint64_t>(kLookedBack, c_.upcoming().front().index);
  const auto around = transactions_from(*c_.trials().open_evidence(),
                                        c_.upcoming().front().index - back, back + kLookedAt);
  for (const BusTransaction& fetch : around) {
    const auto base = smbase_of(fetch);
    if (!base) continue;
    for (const Position place : smi_places(fetch)) suspect_smi(place, fetch, *base);
    return;
  }
}

/// Where the SMI whose handler begins with this fetch may have been taken.
std::set<Position> SmiCauses::smi_places(const BusTransaction& fetch) const {
  std::set<Position> places{c_.divergence().position,
                            {c_.divergence().position.instruction + 1, 0}};
  if (fetch.has(kPositionKnown)) {
    places.insert(fetch.position);
  } else if (fetch.index < c_.upcoming().front().index) {
    const auto& steps = c_.history().steps();
    for (std::size_t i = steps.size() - std::min(kMaxPlaces, steps.size()); i < steps.size(); ++i) {
      places.insert(steps[i].position);
    }
  }
  return places;
}

/// An SMI taken at `place`; `revision` tells the map of the state that it saves.
Cause SmiCauses::smi_cause(Position place, const BusTransaction& fetch, std::uint32_t base,
                           std::uint8_t revision) const {
  Hint smi;
  smi.kind = Hint::Kind::added_interrupt;
  smi.name = "smi";
  smi.transaction = fetch.index;
  smi.position = place;
  smi.value = revision;
  Cause cause;
  cause.kind = CauseKind::missing_interrupt;
  cause.text = fmt::format(
      "the capture lacks an SMI before instruction {}: code is fetched at SMBASE + 8000h, {:08x}",
      place.instruction, fetch.address.value);
  cause.hints.push_back(smi);
  cause.start = {place, fetch.index};
  cause.price = kSmi;
  const bool moved =
      base != c_.recording().initial.smbase || is_unknown(c_.recording().initial, kSmbase);
  if (moved && get_register(c_.recording().initial, kSmbase)) {
    Hint known;
    known.kind = Hint::Kind::register_value;
    known.name = kSmbase;
    known.value = base;
    cause.hints.push_back(known);
    cause.start = {{0, 0}, 0};
    cause.text += fmt::format(", SMBASE being {:x}", base);
  }
  return cause;
}

/// The stores that the processor makes at the SMI of `cause`; with `as_read` they hold what is
/// first read there, by RSM at the latest: what no manual says of a saved state is in it too.
std::vector<Hint> SmiCauses::smi_stores(const Cause& cause, Position place,
                                        const BusTransaction& fetch, std::uint32_t base,
                                        bool as_read) const {
  std::vector<Hint> stores;
  const RunHistory& done = c_.trials().observe(cause.hints, cause.start, place.instruction + 1);
  for (const HistoryStep& step : done.steps()) {
    for (const HistoryAccess& a : done.accesses(step)) {
      const std::uint32_t offset = a.address.low32() - base;
      if (a.kind != HistoryAccess::Kind::write || offset < kSaveBegin || offset >= kSaveEnd)
        continue;
      Hint& store = stores.emplace_back();
      store.kind = Hint::Kind::added_captured_write;
      store.transaction = fetch.index;
      store.position = place;
      store.address = a.address;
      for (std::uint32_t b = 0; b < a.size; ++b) {
        const auto own = static_cast<std::uint8_t>(a.value >> (8 * b));
        const auto read = c_.recording().image.byte(a.address.plus32(b));
        store.data.push_back(as_read ? read.value_or(own) : own);
      }
    }
  }
  return stores;
}

void SmiCauses::suspect_smi(Position place, const BusTransaction& fetch, std::uint32_t base) {
  const auto revision = c_.recording().image.byte(PhysAddr{base + kRevision});
  for (const bool as_read : {true, false}) {
    if (as_read && !revision) continue;
    Cause cause = smi_cause(place, fetch, base, as_read ? *revision : 0);
    // Where its stores stay in a cache, nothing more is missing.
    const bool cached = c_.recording().bus.form == CacheForm::write_back;
    if (cached) out_.add(cause);
    const std::vector<Hint> stores = smi_stores(cause, place, fetch, base, as_read);
    if (stores.empty()) {
      if (!cached) out_.add(std::move(cause));
      continue;
    }
    cause.text += fmt::format(", and it lacks the {} stores of it", stores.size());
    cause.hints.insert(cause.hints.end(), stores.begin(), stores.end());
    out_.add(std::move(cause));
  }
}

}  // namespace

void unseen_smi(const CauseContext& context, CauseList& out) {
  SmiCauses(context, out).unseen_smi();
}

}  // namespace citcat
