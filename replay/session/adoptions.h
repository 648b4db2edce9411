#pragma once
// Repeats the adoptions of a verified replay, without needing the bus.

#include <cstddef>
#include <utility>
#include <vector>

#include "events/adoption.h"
#include "replay/machine/corrector.h"

namespace citcat {

/// Tells the machine each adoption at the moment when the verified replay made it.
class Adoptions final : public Corrector {
 public:
  /// `adoptions` are ordered by position. Those before `from` have already been made.
  Adoptions(std::vector<Adoption> adoptions, Position from);
  /// The replay continues from another position; adoptions before it have already been made.
  void go_to(Position from);
  /// These take the place of the others; of the same run, of which more is known by now.
  void set(std::vector<Adoption> adoptions) { adoptions_ = std::move(adoptions); }
  std::size_t count() const { return adoptions_.size(); }

  Position due() const override;
  const Adoption* after_store(PhysAddr address, std::size_t size, Position now) override;
  const Adoption* after_instruction(Position now) override;

 private:
  std::vector<Adoption> adoptions_;
  std::size_t next_ = 0;
};

}  // namespace citcat
