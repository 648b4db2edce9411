#pragma once
// The interface of the judge, which decides whether a run is the right one.

#include <cstdint>

#include "events/machine/address.h"
#include "events/position.h"
#include "replay/machine/executed_block.h"
#include "replay/machine/instruction_numbers.h"
#include "replay/machine/observer.h"
#include "replay/machine/store_trap.h"
#include "replay/machine/string_iterations.h"

namespace citcat {

/// Judges the run. A run has at most one judge, which is called before the observers. It throws
/// ReplayStopped where the run is wrong, ends it by Machine::control(), and corrects memory by
/// Machine::correct().
///
/// Before expected(), a judge of blocks receives only events, page walks, copies, stores of
/// floating-point results, and instructions that load EFLAGS. It receives blocks by agreed(), not
/// by ran(), and of its interest() only `reads` counts. Any other judge receives each instruction
/// with all its accesses.
class BlockJudge : public Observer {
 public:
  /// The machine to be judged, called once it has been loaded; valid as long as it reports.
  virtual void judges(Machine& machine) = 0;
  virtual bool judges_blocks() const = 0;
  /// Where it sets a trap at times; always the same. Null: nowhere.
  virtual StoreTrap* store_trap() { return nullptr; }

  /// The first position at which something is expected, as far as is known. Never goes back after
  /// what has been reported since.
  virtual Position expected() { return {}; }
  /// Whether every store is expected: then blocks with stores are always judged.
  virtual bool expects_stores() const { return true; }
  /// Whether even code that is not reported must keep account of which bytes become defined, that
  /// no others are read, and which flags become undefined (Machine::take_untold_flags()).
  virtual bool wants_account() const { return true; }
  /// Whether the next `count` instructions, the first at `first`, may run as a block. If not, each
  /// is reported with all its accesses.
  virtual bool may_run_block(Position /*first*/, std::uint32_t /*count*/) { return true; }
  struct BatchRoom {
    std::uint32_t may_run = 0;  ///< instructions, at most
    std::uint32_t due = 0;      ///< after so many of them nothing is expected
  };
  /// How many of the next `most` instructions may run, in whole blocks, before it is asked about
  /// them all at once. None: it wants to be asked block by block. Those that run may be less.
  virtual BatchRoom may_run_batch(Position /*first*/, std::uint32_t /*most*/) { return {}; }
  /// Which reads of what is about to be passed to agrees() it needs.
  virtual InstructionNumbers reads_of_interest(Position /*first*/) const {
    return InstructionNumbers::all();
  }
  /// False rolls the block back, and its instructions are executed again and reported one by one
  /// with all their accesses; several blocks, that are judged as one, one by one.
  virtual bool agrees(const JudgedBlock&, Position /*first*/) { return true; }
  /// Asked about iterations that would have to be reported one by one, the first at `first` and not
  /// the first of its instruction: how many certainly agree, and need not be reported.
  virtual std::uint32_t agreed_iterations(const StringIterations&, Position /*first*/) { return 0; }
  /// A block that agrees() has accepted.
  virtual void agreed(const JudgedBlock&, Position /*first*/) {}
  /// MOVS has copied these bytes, of one iteration or of many, each within one frame.
  virtual void copied(PhysAddr /*from*/, PhysAddr /*to*/, std::uint32_t /*size*/) {}
};

}  // namespace citcat
