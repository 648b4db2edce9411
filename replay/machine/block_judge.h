#pragma once
// Who says whether a run is the right one.

#include <cstdint>

#include "events/address.h"
#include "events/position.h"
#include "replay/machine/executed_block.h"
#include "replay/machine/observer.h"
#include "replay/machine/string_iterations.h"

namespace citcat {

/// Judges the run, of which it is told before the observers; a run has one at most. It throws
/// ReplayStopped where the run is wrong, ends it by Machine::control(), and corrects memory by
/// Machine::correct().
///
/// One that judges blocks need be told nothing before expected() but events, page walks, copies,
/// and instructions that load EFLAGS; it is told blocks by agreed(), not by block(). Of its wants()
/// only `reads` counts. One that does not is told of each instruction with all its accesses.
class BlockJudge : public Observer {
 public:
  /// The machine that it judges, once that has been loaded; it outlives what is told.
  virtual void judges(Machine& machine) = 0;
  virtual bool judges_blocks() const = 0;

  /// The first place at which something is expected, as far as is known; never less than it was for
  /// what has been told since.
  virtual Position expected() { return {}; }
  /// Every store is expected: blocks with stores are always told.
  virtual bool expects_stores() const { return true; }
  /// It wants to know of what it is not told, too, which bytes become defined and that no others
  /// are read, and which flags become undefined (Machine::take_untold_flags()).
  virtual bool wants_account() const { return true; }
  /// Whether the next `count` instructions, the first at `first`, may run as a block. Else each is
  /// told with all its accesses.
  virtual bool may_run_block(Position /*first*/, std::uint32_t /*count*/) { return true; }
  /// Which reads of the block about to be told to agrees() it wants to know: bit i, those of
  /// instruction i; bit 63, those of all from number 63 on.
  virtual std::uint64_t reads_of_interest(Position /*first*/) const { return ~std::uint64_t{0}; }
  /// False takes the block back, as if it had not run, and its instructions are made again and told
  /// one by one with all their accesses.
  virtual bool agrees(const JudgedBlock&, Position /*first*/) { return true; }
  /// Asked about iterations that would have to be told one by one, the first at `first` and not the
  /// first of its instruction: how many agree for what they plainly are going to do, and need not
  /// be told.
  virtual std::uint32_t agreed_iterations(const StringIterations&, Position /*first*/) { return 0; }
  /// Told of a block that it agrees with.
  virtual void agreed(const JudgedBlock&, Position /*first*/) {}
  /// MOVS has copied these bytes, of one iteration or of many, each within one frame.
  virtual void copied(PhysAddr /*from*/, PhysAddr /*to*/, std::uint32_t /*size*/) {}
};

}  // namespace citcat
