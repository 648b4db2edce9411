#pragma once

#include <vector>

#include "events/adoption.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

/// Puts the results in place that a verified replay took over from the bus, at the moments when it
/// did. Before all other sinks. Elsewhere blocks of instructions run unreported: nobody else may
/// compare (Detail::comparison).
class AdoptionSink final : public Sink {
 public:
  /// `adoptions` in the order of positions. Those before `from` have been made.
  AdoptionSink(std::vector<Adoption> adoptions, Position from);
  /// The replay goes on from another position: adoptions before it have been made.
  void go_to(Position from);
  /// The machine that is replayed; before it runs.
  void attach(Machine& machine) { machine_ = &machine; }

  Detail detail() const override { return Detail::comparison; }
  Sink* block_receiver() override { return nullptr; }
  Position expected() override;
  bool expects_stores() const override { return false; }
  bool wants_account() const override { return false; }
  bool may_run_block(Position first, std::uint32_t count) override;
  std::uint64_t reads_of_interest(Position) const override { return 0; }
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
