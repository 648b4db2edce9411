#pragma once
// Sets of the inputs from which values were made. Each set is kept once, and has a number.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace citcat {

/// Sets of inputs of a replay. An input is removed from all sets when something constrains it: only
/// unconstrained inputs matter, unless all are requested.
class OriginSets {
 public:
  using Origin = std::uint32_t;
  using Set = std::uint32_t;
  static constexpr Set kNone = 0;
  /// Larger sets lose members, which are then not known to be constrained by what became of the
  /// value: they may be listed though they are, never left out though they are not.
  static constexpr std::size_t kMostMembers = 256;

  OriginSets() : members_(1) {}

  /// From now on what is constrained stays in the sets.
  void keep_constrained() { keeps_constrained_ = true; }
  /// Nothing but these is of interest any more, and they only until they are constrained.
  void keep_only(const std::vector<Origin>& origins);

  /// A new input, and the set of it alone.
  Origin add();
  Set of(Origin origin);
  Set unite(Set a, Set b);
  /// What the set was made from is constrained.
  void constrain(Set set);
  bool constrained(Origin origin) const { return constrained_[origin]; }
  /// Those of its members that are of interest: not constrained so far, unless these are kept.
  std::span<const Origin> members(Set set);

 private:
  Set intern(std::vector<Origin> members);
  void drop_constrained(std::vector<Origin>& members) const;

  bool keeps_constrained_ = false;
  std::vector<bool> constrained_;
  std::vector<bool> dropped_;                 ///< of no interest, as those are that are constrained
  std::vector<std::vector<Origin>> members_;  ///< by set
  std::unordered_map<std::uint64_t, std::vector<Set>> known_;  ///< by hash of the members
  std::unordered_map<std::uint64_t, Set> united_;
};

}  // namespace citcat
