#pragma once
// The interface through which a replay reports the run: the KT writer, digests and every analysis
// are observers.

#include <cstdint>
#include <span>

#include "events/address.h"
#include "events/position.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

class ExecutedBlock;
class KtRecords;
class Machine;

/// Why the processor touched memory.
enum class AccessKind : std::uint8_t {
  data,    ///< an operand, including stack
  walk,    ///< page tables: entries read, accessed and dirty bits written
  system,  ///< descriptor tables, task segments, interrupt frames, SMM state
};

/// An access to memory within one page frame, as the processor made it; of more than one frame
/// there are several.
struct DataReference {
  PhysAddr physical;
  LinearAddr linear;  ///< 0 of page walks and system tables
  /// Its bytes, the first lowest, where that is known and at most 8; of a write, those stored.
  std::uint64_t value = 0;
  std::uint16_t size = 0;
  std::uint16_t instruction = 0;  ///< number in the block
  AccessKind kind = AccessKind::data;
  bool write = false;
};

/// An instruction, or one iteration of a REP string instruction, that completed.
struct ExecutedInstruction {
  const DecodedInstruction* info = nullptr;
  LinearAddr linear;      ///< of its first byte
  std::uint32_t eip = 0;  ///< offset in CS; in 64-bit mode its lower half
  PhysAddr physical;      ///< of its first byte
  std::uint8_t ea_count = 0;
  LinearAddr ea[2];  ///< of operands, as docs/formats/kt.md says
  /// What it read and stored, in order, where that is told so (Wants::references).
  std::span<const DataReference> references;

  /// Offset in CS, all of it: segments of 64-bit mode begin at 0.
  std::uint64_t offset() const { return info->bits64 ? linear.value : eip; }
};

/// An exception, interrupt or software interrupt that was delivered.
struct DeliveredEvent {
  enum class Kind : std::uint8_t { exception, external, software, nmi, smi } kind = Kind::exception;
  std::uint8_t vector = 0;
  std::uint32_t error_code = 0;  ///< 0 where the vector has none
  std::uint16_t cs = 0;
  std::uint64_t eip = 0;  ///< faulting instruction; instruction that would run next; INT n itself
  std::uint64_t cr2 = 0;
  std::uint32_t eflags = 0;
};

/// How an observer is told of plain code.
enum class Attention : std::uint8_t {
  none,    ///< by passed() alone
  stores,  ///< and by StoreListener::stores(), or block() where others are told of blocks
  counts,  ///< and by counted()
  trail,   ///< and of the last of what passed by trailed()
  blocks,  ///< by block(), each time it runs
};
/// What an observer wants of plain code, up to an instruction.
struct Attended {
  Attention how = Attention::blocks;
  std::uint64_t until = ~std::uint64_t{0};  ///< then it is asked again
  std::uint32_t trail = 0;                  ///< instructions; kMostTrail at most
  static constexpr std::uint32_t kMostTrail = 64;
};

/// What an observer wants to be told. All observers are told events: port accesses, deliveries,
/// halts, external writes, loads of CR3, cache flushes, the shutdown.
struct Wants {
  bool instructions = false;  ///< instruction(), iterations() or block()
  /// write(); this and the next two make the run go instruction by instruction, which takes longer.
  bool stores = false;
  bool mappings = false;  ///< mapping()
  bool reads = false;     ///< fetch() and read()
  /// Called before the judge of the run (block_judge.h), and therefore also for what the judge
  /// refuses.
  bool unjudged = false;
  /// What code reads and stores, without slowing the run down as `reads` and `stores` do: of blocks
  /// and iterations told together by ExecutedBlock::references() and
  /// ExecutedInstruction::references; of whatever else runs by fetch(), read() and write() before
  /// its instruction(). Walks that code causes are among them at their places.
  bool references = false;
  /// Of `references` only stores. What stores nothing need not be told at all.
  bool only_stores = false;
  /// It takes counted() in place of block() where attended() says so: by default everywhere.
  bool counts = false;
  /// It takes addresses of 64 bits. Processors with long mode are replayed only where all observers
  /// do.
  bool wide = false;

  /// Everything but reads.
  static constexpr Wants changes() { return {true, true, true, false, false}; }
  static constexpr Wants everything() { return {true, true, true, true, false}; }
  constexpr Wants before_judged() const {
    Wants w = *this;
    w.unjudged = true;
    return w;
  }
  constexpr Wants and_wide() const {
    Wants w = *this;
    w.wide = true;
    return w;
  }
  /// Whether plain code must be told access by access.
  constexpr bool each_access() const { return stores || mappings || reads; }
};

/// Is called as the replay goes on, in program order. `now` is the position of what is reported:
/// instructions completed before it. Observers are independent of one another, and the order in
/// which they are called never matters. An observer neither changes the machine nor ends the run
/// (run_control.h).
class Observer {
 public:
  virtual ~Observer() = default;
  /// Asked once, when the machine is made.
  virtual Wants wants() const { return Wants::changes(); }
  /// The machine that will report, called once it has been loaded; valid as long as it reports.
  virtual void watch(const Machine& /*machine*/) {}
  /// Where the machine may write KT records of blocks instead of calling block(); null: nowhere.
  virtual KtRecords* records() { return nullptr; }

  virtual void instruction(const ExecutedInstruction&, Position) {}
  /// `count` iterations of a REP string instruction, `first` the one at `now`; the addresses of
  /// each further one are `step` bytes higher. By default each is handed to instruction().
  virtual void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now) {
    ExecutedInstruction e = first;
    for (std::uint32_t i = 0; i < count; ++i, ++now.iteration) {
      instruction(e, now);
      for (unsigned a = 0; a < e.ea_count; ++a) e.ea[a] = e.ea[a].plus32(step);
    }
  }
  /// Instructions that completed one after another, the first at `first`. By default each is handed
  /// to instruction().
  virtual void block(const ExecutedBlock& block, Position first);
  /// So many more executions of a block, each of them whole: with Wants::counts, in any order, and
  /// at the latest in Machine::tell_counts(). Addresses and references are not known.
  virtual void counted(const ExecutedBlock&, std::uint64_t /*executions*/) {}
  /// How plain code is to be told from the instruction on. Asked again and again. What is told
  /// alone - instructions, strings - is told whatever it answers.
  virtual Attended attended(std::uint64_t /*instruction*/) {
    return {.how = wants().counts ? Attention::counts : Attention::blocks};
  }
  /// Instructions [from, to), all plain, at one level and in one address space, completed and are
  /// not told by block(). Told before anything that comes behind them.
  virtual void passed(std::uint64_t /*from*/, std::uint64_t /*to*/) {}
  /// With Attention::trail: of the last instructions that passed, block by block, as many as was
  /// asked for, or a few more. passed() has told only those before them. Counted() has their
  /// executions.
  virtual void trailed(const ExecutedBlock&, Position /*first*/) {}
  virtual void fetch(PhysAddr, std::uint32_t /*size*/, Position) {}
  virtual void read(PhysAddr, std::uint32_t /*size*/, AccessKind, Position) {}
  virtual void write(PhysAddr, std::span<const std::uint8_t>, AccessKind, Position) {}
  /// First use of a page since its translation was changed or dropped.
  virtual void mapping(LinearAddr /*page*/, PhysAddr /*frame*/, Position) {}
  virtual void io_read(std::uint16_t /*port*/, std::uint32_t /*size*/, std::uint32_t /*value*/,
                       Position) {}
  virtual void io_write(std::uint16_t /*port*/, std::uint32_t /*size*/, std::uint32_t /*value*/,
                        Position) {}
  virtual void delivered(const DeliveredEvent&, Position) {}
  /// Another bus master is about to change memory; the address is the captured one.
  virtual void external_write(PhysAddr, std::span<const std::uint8_t>, Position) {}
  virtual void halted(Position) {}
  virtual void cache_flushed(bool /*write_back*/, Position) {}
  virtual void shutdown(Position) {}
  /// CR3 was loaded (also by a task switch).
  virtual void address_space(std::uint32_t /*cr3*/, Position) {}
};

}  // namespace citcat
