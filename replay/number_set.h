#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <unordered_map>

namespace citcat {

/// Numbers, of lines of memory or of page frames: cheap to ask and to add to, where they are near
/// others.
class NumberSet {
 public:
  NumberSet() = default;
  NumberSet(const NumberSet& other) : groups_(other.groups_) {}
  NumberSet& operator=(const NumberSet& other) {
    groups_ = other.groups_;
    recent_ = {};
    return *this;
  }

  void insert(std::uint32_t number) { group_of(number).set(number % kGroup); }
  void erase(std::uint32_t number) {
    if (contains(number)) group_of(number).reset(number % kGroup);
  }
  bool contains(std::uint32_t number) const {
    const Recent& recent = recent_[number / kGroup % kRecent];
    if (recent.group != nullptr && recent.number == number / kGroup)
      return recent.group->test(number % kGroup);
    const auto group = groups_.find(number / kGroup);
    return group != groups_.end() && group->second.test(number % kGroup);
  }

 private:
  static constexpr std::uint32_t kGroup = 256, kRecent = 64;
  using Group = std::bitset<kGroup>;
  struct Recent {
    std::uint32_t number = 0;
    Group* group = nullptr;
  };

  Group& group_of(std::uint32_t number) {
    Recent& recent = recent_[number / kGroup % kRecent];
    if (recent.group == nullptr || recent.number != number / kGroup) {
      recent = {number / kGroup, &groups_[number / kGroup]};  // elements of a map stay in place
    }
    return *recent.group;
  }

  std::unordered_map<std::uint32_t, Group> groups_;
  std::array<Recent, kRecent> recent_{};
};

}  // namespace citcat
