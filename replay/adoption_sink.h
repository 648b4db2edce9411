#pragma once

#include <vector>

#include "events/adoption.h"
#include "replay/machine.h"
#include "replay/observer.h"

namespace citcat {

/// Puts the results in place that a verified replay took over from the bus, at the moments when it
/// did. Before all other sinks.
class AdoptionSink final : public Sink {
 public:
  /// `adoptions` in the order of positions. Those before `from` have been made.
  AdoptionSink(std::vector<Adoption> adoptions, Position from);
  /// The machine that is replayed; before it runs.
  void attach(Machine& machine) { machine_ = &machine; }

  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void instruction(const ExecutedInstruction& e, Position now) override;

 private:
  void adopt(const Adoption& adoption);

  std::vector<Adoption> adoptions_;
  std::size_t next_ = 0;
  Machine* machine_ = nullptr;
};

}  // namespace citcat
