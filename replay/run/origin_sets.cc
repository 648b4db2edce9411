#include "replay/run/origin_sets.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "formats/io/hash.h"

namespace citcat {

namespace {

/// Unions that are remembered; then all are forgotten.
constexpr std::size_t kMostUnions = std::size_t{1} << 20;

}  // namespace

OriginSets::Origin OriginSets::add() {
  constrained_.push_back(false);
  dropped_.push_back(false);
  return static_cast<Origin>(constrained_.size() - 1);
}

OriginSets::Set OriginSets::of(Origin origin) { return intern({origin}); }

OriginSets::Set OriginSets::intern(std::vector<Origin> members) {
  if (members.empty()) return kNone;
  const std::uint64_t hash = hash64(
      {reinterpret_cast<const std::uint8_t*>(members.data()), members.size() * sizeof(Origin)});
  std::vector<Set>& alike = known_[hash];
  for (const Set set : alike) {
    if (members_[set] == members) return set;
  }
  members_.push_back(std::move(members));
  alike.push_back(static_cast<Set>(members_.size() - 1));
  return alike.back();
}

void OriginSets::drop_constrained(std::vector<Origin>& members) const {
  std::erase_if(members, [this](Origin origin) { return dropped_[origin]; });
}

OriginSets::Set OriginSets::unite(Set a, Set b) {
  if (a == b || b == kNone) return a;
  if (a == kNone) return b;
  if (a > b) std::swap(a, b);
  const std::uint64_t key = std::uint64_t{a} << 32 | b;
  const auto found = united_.find(key);
  if (found != united_.end()) return found->second;
  std::vector<Origin> both;
  std::set_union(members_[a].begin(), members_[a].end(), members_[b].begin(), members_[b].end(),
                 std::back_inserter(both));
  drop_constrained(both);
  if (both.size() > kMostMembers) both.resize(kMostMembers);
  const Set set = intern(std::move(both));
  if (united_.size() >= kMostUnions) united_.clear();
  united_[key] = set;
  return set;
}

void OriginSets::constrain(Set set) {
  for (const Origin origin : members_[set]) {
    constrained_[origin] = true;
    if (!keeps_constrained_) dropped_[origin] = true;
  }
}

void OriginSets::keep_only(const std::vector<Origin>& origins) {
  dropped_.assign(dropped_.size(), true);
  for (const Origin origin : origins) dropped_[origin] = constrained_[origin];
  keeps_constrained_ = false;
  united_.clear();
}

std::span<const OriginSets::Origin> OriginSets::members(Set set) {
  drop_constrained(members_[set]);
  return members_[set];
}

}  // namespace citcat
