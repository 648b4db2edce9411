#pragma once
// What the replay tells about the run it recomputes. Everything that wants the trace - the KT
// writer, the verifier, statistics - is a Sink.

#include <cstdint>
#include <span>

#include "events/address.h"
#include "events/position.h"
#include "replay/x86/decoded_instruction.h"

namespace citcat {

struct ExecutedBlock;
struct StringIterations;

/// Why the processor touched memory.
enum class AccessKind : std::uint8_t {
  data,    ///< an operand, including stack
  walk,    ///< page tables: entries read, accessed and dirty bits written
  system,  ///< descriptor tables, task segments, interrupt frames, SMM state
};

/// An instruction, or one iteration of a REP string instruction, that completed.
struct ExecutedInstruction {
  const DecodedInstruction* info = nullptr;
  LinearAddr linear;      ///< of its first byte
  std::uint32_t eip = 0;  ///< offset in CS
  PhysAddr physical;      ///< of its first byte
  std::uint8_t ea_count = 0;
  std::uint32_t ea[2] = {0, 0};  ///< linear, per docs/formats/kt.md
};

/// An exception, interrupt or software interrupt that was delivered.
struct DeliveredEvent {
  enum class Kind : std::uint8_t { exception, external, software, nmi, smi } kind = Kind::exception;
  std::uint8_t vector = 0;
  std::uint32_t error_code = 0;  ///< 0 where the vector has none
  std::uint16_t cs = 0;
  std::uint32_t eip = 0;  ///< faulting instruction; instruction that would run next; INT n itself
  std::uint32_t cr2 = 0;
  std::uint32_t eflags = 0;
};

/// How much of plain code - neither events nor instructions with effects beyond memory and
/// registers - a sink wants to hear of. Each includes those before it.
enum class Detail : std::uint8_t {
  nothing,
  instructions,  ///< instruction() or block()
  comparison,    ///< of blocks in which something is expected, what they read and stored: agreed()
  accesses,      ///< read(), fetch(), write() and mapping() too
};

/// Observer of a replay. Members are called in program order; `now` is the position of what is
/// reported (instructions completed before it).
class Sink {
 public:
  virtual ~Sink() = default;
  /// Asks for read(), fetch() and walk reads too; they cost time.
  virtual bool wants_reads() const { return false; }

  virtual void instruction(const ExecutedInstruction&, Position) {}
  /// `count` iterations of a REP string instruction, `first` the one at `now`; the addresses of
  /// each further one are `step` bytes higher. By default each is handed to instruction().
  virtual void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now) {
    ExecutedInstruction e = first;
    for (std::uint32_t i = 0; i < count; ++i, ++now.iteration) {
      instruction(e, now);
      for (unsigned a = 0; a < e.ea_count; ++a) e.ea[a] += step;
    }
  }
  /// What the sink must be told of plain code. With less than everything the machine may leave out
  /// what it does for each access, and run many instructions between two reports.
  virtual Detail detail() const { return Detail::accesses; }
  /// Instructions that completed one after another, the first at `first`; only for sinks content
  /// with less than Detail::accesses. By default each is handed to instruction().
  virtual void block(const ExecutedBlock& block, Position first);
  /// Whom block() may be told to in place of this sink, with the same effect; null where nobody
  /// listens.
  virtual Sink* block_receiver() { return detail() == Detail::nothing ? nullptr : this; }
  /// The sink that wants Detail::comparison, of which there is one at most; null where there is
  /// none.
  virtual Sink* comparing() { return detail() == Detail::comparison ? this : nullptr; }
  // Of that one. Before expected() it need be told nothing but events, page walks, copies, and
  // instructions that load EFLAGS.
  /// The first place at which something is expected, as far as is known; never less than it was for
  /// what has been told since.
  virtual Position expected() { return {}; }
  /// Every store is expected: blocks with stores are always told.
  virtual bool expects_stores() const { return true; }
  /// It wants to know of what it is not told, too, which bytes become defined and that no others
  /// are read, and which flags become undefined (Machine::take_untold_flags()).
  virtual bool wants_account() const { return true; }
  /// Whether the next `count` instructions, the first at `first`, may be told as blocks. Else each
  /// is told with all its accesses.
  virtual bool may_run_block(Position /*first*/, std::uint32_t /*count*/) { return true; }
  /// Which reads of the block about to be told to agrees() it wants to know: bit i, those of
  /// instruction i; bit 63, those of all from number 63 on.
  virtual std::uint64_t reads_of_interest(Position /*first*/) const { return ~std::uint64_t{0}; }
  /// agrees() may be asked of a block that is about to run (ExecutedBlock::ahead), where it agrees
  /// only for what it plainly is going to do.
  virtual bool looks_ahead() const { return false; }
  /// False takes the block back, as if it had not run, and its instructions are made again and told
  /// one by one with all their accesses; one that is about to run is asked of once more when it
  /// has.
  virtual bool agrees(const ExecutedBlock&, Position /*first*/) { return true; }
  /// Asked about iterations that would have to be told one by one, the first at `first` and not the
  /// first of its instruction: how many agree for what they plainly are going to do, and need not
  /// be told.
  virtual std::uint32_t agreed_iterations(const StringIterations&, Position /*first*/) { return 0; }
  /// MOVS has copied these bytes, of one iteration or of many, each within one frame.
  virtual void copied(PhysAddr /*from*/, PhysAddr /*to*/, std::uint32_t /*size*/) {}
  /// Told of blocks that all agree with, before block(): of one that was asked of ahead, so many
  /// instructions as it came to.
  virtual void agreed(const ExecutedBlock&, Position /*first*/) {}
  virtual void fetch(PhysAddr, std::uint32_t /*size*/, Position) {}
  virtual void read(PhysAddr, std::uint32_t /*size*/, AccessKind, Position) {}
  virtual void write(PhysAddr, std::span<const std::uint8_t>, AccessKind, Position) {}
  virtual void io_read(std::uint16_t /*port*/, std::uint32_t /*size*/, std::uint32_t /*value*/,
                       Position) {}
  virtual void io_write(std::uint16_t /*port*/, std::uint32_t /*size*/, std::uint32_t /*value*/,
                        Position) {}
  virtual void delivered(const DeliveredEvent&, Position) {}
  /// Another bus master is about to change memory; the address is as captured.
  virtual void external_write(PhysAddr, std::span<const std::uint8_t>, Position) {}
  virtual void halted(Position) {}
  virtual void cache_flushed(bool /*write_back*/, Position) {}
  virtual void shutdown(Position) {}
  /// CR3 was loaded (also by a task switch).
  virtual void address_space(std::uint32_t /*cr3*/, Position) {}
  /// First use of a page since it was mapped differently or the translation was dropped.
  virtual void mapping(LinearAddr /*page*/, PhysAddr /*frame*/, Position) {}
};

}  // namespace citcat
