#pragma once
// Operands in memory: examined before an instruction runs, and read and written when a unit
// executes it.

#include <cstdint>
#include <span>

#include "events/machine/address.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

class CodePatcher;
class DebugUnit;

/// access() translates, checks and says what the processor is going to access, in its order, and
/// throws what the processor would. With 16-bit addresses each part of an operand has an offset of
/// its own, which goes on at 0 after FFFF: selectors of far pointers, upper bounds, and what x87
/// operands consist of. Found by single steps on the host's processor (docs/silicon.md); the engine
/// goes on at 10000.
class Operands {
 public:
  /// All must outlive the object.
  Operands(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug,
           CodePatcher& patcher)
      : cpu_(cpu), flight_(flight), expectation_(expectation), debug_(debug), patcher_(patcher) {}

  /// What the processor is going to access: its stores go to InFlight::stores.
  void access(const DataAccess& a, const MemoryOperand& operand);
  /// `writes`: the access itself, or one that follows it to the same place, which is refused before
  /// anything is read.
  void check_segment(const DataAccess& a, const MemoryOperand& operand, bool writes) const;
  /// The operand of the floating-point instruction in flight.
  void read_floating(std::span<std::uint8_t> out);
  /// Part number `i` of an operand of at most four bytes each.
  std::uint32_t part(const MemoryOperand& operand, unsigned i);
  /// The operand of the instruction in flight has two parts, and the second begins at 0.
  bool wraps_between_parts() const;
  /// Reads an operand that access() has looked at.
  void read(LinearAddr linear, std::span<std::uint8_t> out);
  /// An operand of at most four bytes, as a number.
  std::uint32_t read_value(LinearAddr linear, std::uint32_t size);
  /// The same of at most eight.
  std::uint64_t read_wide_value(LinearAddr linear, std::uint32_t size);
  /// Writes `bytes` where InFlight::stores says, which are cut to what was written.
  void write_stores(std::span<const std::uint8_t> bytes);
  /// The engine stores unaligned operands byte by byte. Where one of them changes the block being
  /// executed it leaves the instruction there, and begins it anew: what it has stored so far must
  /// not be what it reads then. Where INS is going to store it stores 0 before it reads the port.
  void keep_overwritten();
  /// The instruction in flight is begun again. The code that it changed is forgotten already, and
  /// nothing else was translated since.
  void put_back_overwritten();

 private:
  void check_wide(const DataAccess& a, const MemoryOperand& operand) const;
  void access_pages(const DataAccess& a, Access kind, bool is_read);
  void read_part(PhysAddr at, std::uint32_t size, std::uint32_t first);
  void store_part(PhysAddr at, std::uint32_t size);
  void tell_read(PhysAddr at, std::uint32_t size, std::uint32_t first);
  void split_access(const DataAccess& a, const MemoryOperand& operand);
  bool is_in_parts(const DataAccess& a, const MemoryOperand& operand) const;
  void access_parts(const DataAccess& a, const MemoryOperand& operand);
  /// An operand, or a part of one, whose offsets follow each other.
  void access_whole(const DataAccess& a, const MemoryOperand& operand);
  /// The instruction in flight stores only the bytes that a mask selects.
  bool selects_bytes() const;
  /// Bit n: it stores byte n of its operand.
  std::uint32_t selected_bytes() const;
  /// Each run of such bytes.
  void access_selected(const DataAccess& a, const MemoryOperand& operand);

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  DebugUnit& debug_;
  CodePatcher& patcher_;
};

}  // namespace citcat
