#pragma once
// The interface through which a replay reports the run: the KT writer, digests and every analysis
// are observers.

#include <cstddef>
#include <cstdint>
#include <span>

#include "events/machine/address.h"
#include "events/machine/address_space.h"
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

/// An access to memory, as the processor made it, within one page frame. An access to two frames is
/// two references.
struct DataReference {
  PhysAddr physical;
  LinearAddr linear;  ///< 0 for page walks and system tables
  /// The bytes read or stored, the first one lowest, if they are known and at most 8.
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
  LinearAddr ea[2];  ///< addresses of operands, as docs/formats/kt.md says
  /// Its reads and stores in order, with Detail::references, and of strings with Detail::accesses;
  /// otherwise empty.
  std::span<const DataReference> references;
};

/// An exception, interrupt or software interrupt that was delivered.
struct DeliveredEvent {
  enum class Kind : std::uint8_t { exception, external, software, nmi, smi } kind = Kind::exception;
  std::uint8_t vector = 0;
  std::uint32_t error_code = 0;  ///< 0 if the vector has none
  std::uint16_t cs = 0;
  std::uint64_t eip = 0;  ///< faulting instruction; instruction that would run next; INT n itself
  std::uint64_t cr2 = 0;
  std::uint32_t eflags = 0;
};

/// A store by ordinary code, within one page frame.
struct PlainStore {
  PhysAddr physical;
  std::uint64_t value = 0;  ///< its bytes, the first lowest
  std::uint32_t size = 0;   ///< bytes: 1, 2, 4 or 8
};

/// How ordinary code is reported to an observer. Ordinary code changes only memory and registers,
/// and is no event. Later values cost more than earlier ones.
enum class Detail : std::uint8_t {
  nothing,     ///< only passed()
  stores,      ///< passed() and stored(); or ran(), if other observers need blocks
  counts,      ///< passed() and counted()
  trail,       ///< passed() and counted(), and ran() for the last instructions that passed
  records,     ///< KT records if the observer has room for them (record_room()), otherwise ran()
  blocks,      ///< ran()
  accesses,    ///< ran(); what blocks read and store follows from their code and their effective
               ///< addresses (x86/decode/addressed_accesses.h)
  references,  ///< ran(), with the reads and stores of each block
};

/// What an observer wants to know of a run. All observers receive events: port accesses,
/// deliveries, halts, external writes, dropped translations, loads of CR3, cache flushes, the
/// shutdown.
struct Interest {
  /// How the observer receives ordinary code. With Detail::nothing throughout, it does not receive
  /// instruction() and iterations() either.
  Detail code = Detail::nothing;
  /// Call write(). This and the next two make the run go instruction by instruction, which is slow.
  bool stores = false;
  bool mappings = false;  ///< call mapping()
  bool reads = false;     ///< call fetch() and read()
  /// Call the observer before the judge of the run (block_judge.h), and so also for code that the
  /// judge refuses.
  bool unjudged = false;
  /// With Detail::trail: the number of instructions, at most kMostTrail.
  std::uint32_t trail = 0;
  /// The interest may change at this instruction: interest_from() is then called again.
  std::uint64_t until = ~std::uint64_t{0};

  static constexpr std::uint32_t kMostTrail = 64;

  /// Each instruction and everything that it does, except its reads.
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
  /// True if ordinary code must be reported access by access.
  constexpr bool each_access() const { return stores || mappings || reads; }
};

/// A buffer into which the machine may write KT records of blocks (docs/formats/kt.md), with linear
/// addresses.
struct RecordRoom {
  std::uint8_t* at = nullptr;  ///< null: no buffer; the next block is reported instead
  /// Records of a block may begin in these bytes; kBeyond further bytes follow them.
  std::size_t bytes = 0;
  std::uint64_t until = 0;  ///< first instruction that must not be among them
  static constexpr std::size_t kBeyond = 4096;
};

/// Receives the run in program order while the replay goes on. The Position passed is that of the
/// reported event: the instructions completed before it. Observers are independent of one another,
/// and the order in which they are called never matters. An observer neither changes the machine
/// nor ends the run (run_control.h).
class Observer {
 public:
  virtual ~Observer() = default;
  /// Everything that the observer may ever want; called once, when the machine is made. Code that
  /// does not run in blocks is reported with Detail::stores by write(), and with Detail::accesses
  /// and Detail::references by write(), fetch() and read(), before its instruction(). With
  /// Detail::references, page walks that code causes are among its references, in order.
  virtual Interest interest() const { return Interest::changes(); }
  /// What the observer wants of ordinary code (`code`, `trail`) from this instruction on; called
  /// again and again. Whatever it returns, the observer receives code that does not run in blocks:
  /// single instructions and strings.
  virtual Interest interest_from(std::uint64_t /*instruction*/) { return interest(); }
  /// Called once with the loaded machine, which stays valid as long as it reports.
  virtual void watch(const Machine& /*machine*/) {}

  virtual void instruction(const ExecutedInstruction&, Position) {}
  /// `count` iterations of a REP string instruction. `first` is the one at `now`; the addresses of
  /// each further one, and of its references, are `step` bytes higher. By default each is passed to
  /// instruction().
  virtual void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now);
  /// Blocks of ordinary code that ran one after the other, at one level and in one address space.
  /// The first instruction is at `first`, and they have `count` instructions together. By default
  /// each is passed to instruction(). With Detail::trail these are the last instructions that ran,
  /// as many as Interest::trail or a few more; passed() reports those before them, counted() all.
  virtual void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count);
  /// The block ran completely this many more times. Calls come in any order, at the latest in
  /// Machine::tell_counts(). Addresses and references are not known.
  virtual void counted(const ExecutedBlock&, std::uint64_t /*executions*/) {}
  /// Instructions [from, to) completed and are not reported by ran(). All are ordinary code, at one
  /// level and in one address space. Called before anything after them is reported.
  virtual void passed(std::uint64_t /*from*/, std::uint64_t /*to*/) {}
  /// All stores of ordinary code from `from` on, in order; none after Interest::until.
  virtual void stored(std::span<const PlainStore>, Position /*from*/) {}
  /// The buffer for records of instructions from `now` on.
  virtual RecordRoom record_room(Position /*now*/) { return {}; }
  /// The machine wrote this many bytes to the buffer: whole records of this many instructions.
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
  /// The processor is about to lose its translation of a page, though nothing tells it to.
  virtual void translation_dropped(LinearAddr /*page*/, Position) {}
  virtual void halted(Position) {}
  virtual void cache_flushed(bool /*write_back*/, Position) {}
  virtual void shutdown(Position) {}
  /// CR3 was loaded, by MOV or by a task switch.
  virtual void address_space(AddressSpaceId /*cr3*/, Position) {}
};

}  // namespace citcat
