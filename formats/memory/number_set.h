#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <unordered_map>

namespace citcat {

/// A set of numbers, of cache lines or page frames. Lookups and insertions are cheap for numbers
/// that lie close together.
class NumberSet {
 public:
  NumberSet() = default;
  NumberSet(const NumberSet& other) : groups_(other.groups_) {}
  NumberSet& operator=(const NumberSet& other) {
    groups_ = other.groups_;
    recent_ = {};
    return *this;
  }

  void insert(std::uint64_t number) { group_of(number).set(number % kGroup); }
  void erase(std::uint64_t number) {
    if (contains(number)) group_of(number).reset(number % kGroup);
  }
  bool contains(std::uint64_t number) const {
    const std::uint64_t which = number / kGroup;
    Recent& recent = recent_[which % kRecent];
    if (recent.which != which) {
      const auto group = groups_.find(which);
      recent = {which, group != groups_.end() ? &group->second : nullptr};
    }
    return recent.group != nullptr && recent.group->test(number % kGroup);
  }

 private:
  static constexpr std::uint64_t kGroup = 256, kRecent = 64;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};  // never the number of a group
  using Group = std::bitset<kGroup>;
  struct Recent {
    std::uint64_t which = kNone;
    Group* group = nullptr;  ///< null where there is none
  };

  Group& group_of(std::uint64_t number) {
    const std::uint64_t which = number / kGroup;
    Recent& recent = recent_[which % kRecent];
    if (recent.group == nullptr || recent.which != which) {
      recent = {which, &groups_[which]};  // elements of a map stay in place
    }
    return *recent.group;
  }

  // Mutable, because a lookup remembers the group that it found; it changes nothing else.
  mutable std::unordered_map<std::uint64_t, Group> groups_;
  mutable std::array<Recent, kRecent> recent_{};
};

}  // namespace citcat
