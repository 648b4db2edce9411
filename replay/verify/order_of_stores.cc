#include "replay/verify/order_of_stores.h"

#include <algorithm>

#include "events/position_text.h"
#include "formats/io/hash.h"

namespace citcat {

namespace {

constexpr const char* kOtherOrder =
    "the replay writes memory in another order than the processor did";
constexpr const char* kOtherThanBefore =
    "the processor wrote memory in another order than when it did the same before";
constexpr const char* kMarkedLate =
    "the processor marked an entry of a page table after the stores that it was marked for";

std::uint64_t hash_of(const std::vector<std::uint64_t>& numbers) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(numbers.data());
  return hash64({bytes, numbers.size() * sizeof(std::uint64_t)});
}

}  // namespace

void OrderOfStores::begin(AccessKind kind, PhysAddr a, std::uint32_t size) {
  stores_.push_back({kind, a, size});
}

std::optional<Mismatch> OrderOfStores::made(const BusTransaction& t) {
  const Store& store = stores_.back();
  const std::size_t number = stores_.size() - 1;
  if (!parts_.empty() && parts_.back().t.index == t.index && parts_.back().store == number) {
    return std::nullopt;
  }
  // The machine does not say of every iteration that it is complete, but they are counted.
  const bool is_behind = !parts_.empty() && stores_[parts_.back().store].kind != AccessKind::walk &&
                         parts_.back().t.position != t.position && t.index < parts_.back().t.index;
  parts_.push_back({t, number});
  const bool passed = is_behind || (passed_ && t.index < *passed_);
  if (store.kind == AccessKind::walk || !passed) return std::nullopt;
  return Mismatch{kOtherOrder, t, "the bus shows stores of earlier instructions after it"};
}

std::optional<Mismatch> OrderOfStores::complete(std::uint64_t identity, Position now) {
  std::optional<Mismatch> mismatch;
  if (parts_.size() > 1) {
    mismatch = check_walks();
    if (!mismatch) mismatch = check_parts(now);
    if (!mismatch) mismatch = check_stores(identity, now);
  }
  for (const Part& part : parts_) {
    if (stores_[part.store].kind == AccessKind::walk) continue;
    passed_ = std::max(passed_.value_or(part.t.index), part.t.index);
  }
  stores_.clear();
  parts_.clear();
  return mismatch;
}

std::map<std::uint64_t, std::uint64_t> OrderOfStores::orders() const {
  std::map<std::uint64_t, std::uint64_t> orders;
  for (const auto& [key, seen] : seen_) orders.emplace(key, seen.order);
  return orders;
}

/// From the last part back: an entry is marked for what the replay makes after it. In a switch of
/// tasks that is in the new address space, and what is stored in the old one comes before.
std::optional<Mismatch> OrderOfStores::check_walks() const {
  std::optional<std::uint64_t> last;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (stores_[part->store].kind != AccessKind::walk) {
      last = std::max(last.value_or(part->t.index), part->t.index);
    } else if (last && part->t.index > *last) {
      return Mismatch{kMarkedLate, part->t, "the entry marked before them"};
    }
  }
  return std::nullopt;
}

/// The parts of each store that went over the bus in several.
std::optional<Mismatch> OrderOfStores::check_parts(Position now) {
  for (auto first = parts_.begin(); first != parts_.end();) {
    const auto end = std::find_if(first, parts_.end(),
                                  [&](const Part& part) { return part.store != first->store; });
    std::vector<std::uint64_t> by_bus;  // their numbers from below
    for (auto part = first; part != end; ++part)
      by_bus.push_back(static_cast<std::uint64_t>(part - first));
    if (by_bus.size() > 1) {
      std::sort(by_bus.begin(), by_bus.end(), [&](std::uint64_t a, std::uint64_t b) {
        return first[static_cast<std::ptrdiff_t>(a)].t.index <
               first[static_cast<std::ptrdiff_t>(b)].t.index;
      });
      const bool upward = std::is_sorted(by_bus.begin(), by_bus.end());
      const Store& store = stores_[first->store];
      const std::uint64_t order = upward ? kUpward : hash_of(by_bus);
      auto mismatch = hold_to(parts_key(store.address, store.size), order, *first, now);
      if (mismatch) return mismatch;
    }
    first = end;
  }
  return std::nullopt;
}

/// The order of the stores to each other, of which none may go between the parts of another unless
/// it always does.
std::optional<Mismatch> OrderOfStores::check_stores(std::uint64_t identity, Position now) {
  std::vector<std::uint64_t> key{identity};
  for (const Store& store : stores_) {
    if (store.kind == AccessKind::walk) continue;
    key.push_back(std::uint64_t{store.size} << 2 | static_cast<std::uint64_t>(store.kind));
  }
  constexpr std::size_t kOne = 2;  // and the identity
  if (key.size() <= kOne) return std::nullopt;
  std::vector<const Part*> by_bus;
  for (const Part& part : parts_) {
    if (stores_[part.store].kind != AccessKind::walk) by_bus.push_back(&part);
  }
  if (by_bus.empty()) return std::nullopt;
  const Part& first = *by_bus.front();
  std::sort(by_bus.begin(), by_bus.end(),
            [](const Part* a, const Part* b) { return a->t.index < b->t.index; });
  std::vector<std::uint64_t> order;
  for (const Part* const part : by_bus) {
    if (order.empty() || order.back() != part->store) order.push_back(part->store);
  }
  // Numbers of stores, walks left out.
  std::vector<std::uint64_t> numbers = order;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  for (std::uint64_t& store : order) {
    store = static_cast<std::uint64_t>(std::lower_bound(numbers.begin(), numbers.end(), store) -
                                       numbers.begin());
  }
  constexpr std::uint64_t kOfStores = std::uint64_t{1} << 63;  // apart from parts_key()
  return hold_to(hash_of(key) | kOfStores, hash_of(order), first, now);
}

std::optional<Mismatch> OrderOfStores::hold_to(std::uint64_t key, std::uint64_t order,
                                               const Part& first, Position now) {
  const auto [seen, is_new] = seen_.try_emplace(key, Seen{order, now});
  if (is_new || seen->second.order == order) return std::nullopt;
  return Mismatch{kOtherThanBefore, first.t,
                  "another order at instruction " + position_text(seen->second.at)};
}

}  // namespace citcat
