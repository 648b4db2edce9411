#include "replay/infer/places/candidates.h"

namespace citcat {

BoundaryGroup::BoundaryGroup() = default;
BoundaryGroup::BoundaryGroup(const BoundaryGroup&) = default;
BoundaryGroup::BoundaryGroup(BoundaryGroup&&) noexcept = default;
BoundaryGroup& BoundaryGroup::operator=(const BoundaryGroup&) = default;
BoundaryGroup& BoundaryGroup::operator=(BoundaryGroup&&) noexcept = default;
BoundaryGroup::~BoundaryGroup() = default;

Candidates::Candidates() = default;
Candidates::Candidates(const Candidates&) = default;
Candidates::Candidates(Candidates&&) noexcept = default;
Candidates& Candidates::operator=(const Candidates&) = default;
Candidates& Candidates::operator=(Candidates&&) noexcept = default;
Candidates::~Candidates() = default;

void describe(PlacedEvent& event, const std::vector<BoundaryGroup>& groups) {
  const BoundaryGroup& chosen = groups.front();
  if (groups.size() == 1 && event.placement == Placement::unique && chosen.count > 1) {
    event.placement = Placement::equivalent;
  }
  event.position = chosen.first;
  event.others = chosen.others;
  event.candidates = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    event.candidates += groups[i].count;
    if (i != 0 && event.others.size() < kListedPositions) event.others.push_back(groups[i].first);
  }
}

}  // namespace citcat
