#pragma once
// The interface through which a replay reports the run: the KT writer, digests and every analysis
// are observers.

#include <cstddef>
#include <cstdint>
#include <span>

#include "events/address.h"
#include "events/position.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

class ExecutedBlock;
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
  LinearAddr linear;         ///< of its first byte
  std::uint64_t offset = 0;  ///< in CS, of its first byte: segments of 64-bit mode begin at 0
  PhysAddr physical;         ///< of its first byte
  std::uint8_t ea_count = 0;
  LinearAddr ea[2];  ///< of operands, as docs/formats/kt.md says
  /// What it read and stored, in order, where that is reported so (Detail::references).
  std::span<const DataReference> references;
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

/// What plain code stored, within one page frame.
struct PlainStore {
  PhysAddr physical;
  std::uint64_t value = 0;  ///< its bytes, the first lowest
  std::uint32_t size = 0;   ///< bytes: 1, 2, 4 or 8
};

/// How plain code is reported to an observer: code that neither is an event nor has effects beyond
/// memory and registers. The later ones cost more.
enum class Detail : std::uint8_t {
  nothing,     ///< passed() alone
  stores,      ///< passed() and stored(); or ran(), where blocks are reported to others
  counts,      ///< passed() and counted()
  trail,       ///< passed() and counted(), and ran() for the last instructions that passed
  records,     ///< KT records where the observer has room for them (record_room()), otherwise ran()
  blocks,      ///< ran()
  references,  ///< ran(), with what each block read and stored
};

/// What an observer wants to know of a run. All observers receive events: port accesses,
/// deliveries, halts, external writes, loads of CR3, cache flushes, the shutdown.
struct Interest {
  /// How it receives plain code. An observer that never wants any does not receive instruction()
  /// and iterations() either.
  Detail code = Detail::nothing;
  /// write(). This and the next two make the run go instruction by instruction, which takes longer.
  bool stores = false;
  bool mappings = false;  ///< mapping()
  bool reads = false;     ///< fetch() and read()
  /// Called before the judge of the run (block_judge.h), and therefore also for what the judge
  /// refuses.
  bool unjudged = false;
  /// With Detail::trail: so many instructions, kMostTrail at most.
  std::uint32_t trail = 0;
  /// At this instruction something else may be of interest: the observer is asked again.
  std::uint64_t until = ~std::uint64_t{0};

  static constexpr std::uint32_t kMostTrail = 64;

  /// Each instruction, and all that it does but what it reads.
  static constexpr Interest changes() {
    return {.code = Detail::blocks, .stores = true, .mappings = true};
  }
  static constexpr Interest everything() {
    return {.code = Detail::blocks, .stores = true, .mappings = true, .reads = true};
  }
  constexpr Interest before_judged() const {
    Interest i = *this;
    i.unjudged = true;
    return i;
  }
  /// Plain code must be reported access by access.
  constexpr bool each_access() const { return stores || mappings || reads; }
};

/// Where the machine may write KT records of blocks (docs/formats/kt.md), with linear addresses.
struct RecordRoom {
  std::uint8_t* at = nullptr;  ///< null: nowhere; the next block is to be reported
  /// Bytes in which records of a block may begin; behind them there are kBeyond more.
  std::size_t bytes = 0;
  std::uint64_t until = 0;  ///< first instruction that must not be among them
  static constexpr std::size_t kBeyond = 4096;
};

/// Is called as the replay goes on, in program order. `now` is the position of what is reported:
/// instructions completed before it. Observers are independent of one another, and the order in
/// which they are called never matters. An observer neither changes the machine nor ends the run
/// (run_control.h).
class Observer {
 public:
  virtual ~Observer() = default;
  /// The most that it ever wants, asked once, when the machine is made. With Detail::stores and
  /// Detail::references what does not run in blocks is reported by write(), and with the latter
  /// by fetch() and read(), before its instruction(); walks that code causes are among the
  /// references at their places.
  virtual Interest interest() const { return Interest::changes(); }
  /// What it wants of plain code (`code`, `trail`) from the instruction on. Asked again and again.
  /// Whatever it answers, it receives what runs alone: instructions, strings.
  virtual Interest interest_from(std::uint64_t /*instruction*/) { return interest(); }
  /// The machine that will report, called once it has been loaded; valid as long as it reports.
  virtual void watch(const Machine& /*machine*/) {}

  virtual void instruction(const ExecutedInstruction&, Position) {}
  /// `count` iterations of a REP string instruction, `first` the one at `now`; the addresses of
  /// each further one are `step` bytes higher, those of its references too. By default each is
  /// handed to instruction().
  virtual void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now);
  /// Blocks of plain code that ran one behind the other, at one level and in one address space. The
  /// first instruction is at `first`, and they have `count` instructions together. By default each
  /// is handed to instruction(). With Detail::trail these are the last instructions that passed, as
  /// many as were asked for or a few more; passed() has those before them, counted() all.
  virtual void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count);
  /// So many more executions of a block, each of them whole, while counts were wanted: in any
  /// order, and at the latest in Machine::tell_counts(). Addresses and references are not known.
  virtual void counted(const ExecutedBlock&, std::uint64_t /*executions*/) {}
  /// Instructions [from, to), all plain, at one level and in one address space, completed and are
  /// not reported by ran(). Called before anything that comes behind them is reported.
  virtual void passed(std::uint64_t /*from*/, std::uint64_t /*to*/) {}
  /// All that plain code stored from `from` on, in order, and nothing behind Interest::until.
  virtual void stored(std::span<const PlainStore>, Position /*from*/) {}
  /// Records of instructions from `now` on may be written there.
  virtual RecordRoom record_room(Position /*now*/) { return {}; }
  /// So many bytes were written to the room, whole records of so many instructions.
  virtual void recorded(std::size_t /*bytes*/, std::uint64_t /*instructions*/) {}
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
