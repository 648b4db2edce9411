#pragma once
// Results that a verified replay took over from the bus, made once more without it.

#include <cstddef>
#include <utility>
#include <vector>

#include "events/adoption.h"
#include "replay/machine/corrector.h"

namespace citcat {

/// Has the machine put them in place at the moments when the verified replay did.
class Adoptions final : public Corrector {
 public:
  /// `adoptions` in the order of positions. Those before `from` have been made.
  Adoptions(std::vector<Adoption> adoptions, Position from);
  /// The replay goes on from another position: adoptions before it have been made.
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
