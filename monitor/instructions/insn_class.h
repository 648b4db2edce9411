#pragma once
// What a recorder must know about an instruction beforehand: whether it repeats, talks to ports,
// uses values that cross no bus, or changes how memory is reached.

#include <cstdint>
#include <span>

#include "x86/decode/decoded_instruction.h"

namespace citcat::monitor {

/// The default size of operands and addresses in a code segment; bits64 is 64-bit mode, where
/// addresses have 64 bits and operands mostly 32.
enum class CodeSize : std::uint8_t { bits16, bits32, bits64 };

enum class InsnKind : std::uint8_t {
  plain,
  movs,  ///< accesses per iteration are known for these six: see accesses_per_iteration()
  cmps,
  stos,
  lods,
  scas,
  ins,
  outs,
  in,
  out,
  halt,
  cpuid,
  rdtsc,
  rdtscp,
  rdmsr,
  wrmsr,
  rdpmc,
  rdrand,
  rdseed,
  debug_register,    ///< MOV from and to DRn
  control_register,  ///< MOV CRn, LMSW: paging or caching may change
  descriptor_table,  ///< LGDT, LIDT: where descriptors and vectors are
  local_table,       ///< LLDT: the same
  task_register,     ///< LTR
  invlpg,
  flush_line,  ///< CLFLUSH and its relatives
  invd,
  wbinvd,
  software_interrupt,
  icebp,  ///< INT1: traps by itself, as INT3 does
  push_segment,
  pop_segment,
  pop_all,
  locked_neg,  ///< LOCK NEG of memory, whose operand the emulator reads twice
  iret,
  far_return,
  far_transfer,  ///< JMP and CALL to another segment
  resume,        ///< RSM
  fxsave,
  fxrstor,
  x87,        ///< sets the pointers to the last x87 instruction and operand
  x87_init,   ///< FNINIT: clears them
  x87_load,   ///< FLDENV, FRSTOR: loads them
  x87_store,  ///< FNSTENV: stores them
  x87_save,   ///< FNSAVE: stores and clears them
  emms,
  xsave,
  xsaveopt,
  xrstor,
  xgetbv,
  xsetbv,
  compacted_state,  ///< XSAVEC, XSAVES, XRSTORS
  vector,           ///< AVX and its successors, by their prefixes in 64-bit mode
};

/// Whether an instruction is one of MMX, which puts all x87 registers in use when it is executed:
/// for the emulator before its operand is accessed, or after that.
enum class MmxUse : std::uint8_t { none, before_operand, behind_operand };

struct InsnClass {
  InsnKind kind = InsnKind::plain;
  bool repeated : 1 = false;          ///< a string instruction under REP, REPE or REPNE
  bool updates_memory : 1 = false;    ///< reads its memory operand, then writes it
  bool loads_cr3 : 1 = false;         ///< MOV CR3
  bool marks_descriptor : 1 = false;  ///< what it stores in protected mode is a descriptor's type
  bool locked : 1 = false;            ///< LOCK, or XCHG with memory
  bool calls_system : 1 = false;      ///< INT 80h, SYSENTER, SYSCALL: how programs of Linux do
  bool branch : 1 = false;  ///< may continue at its own address without having been restarted
  bool port_in_dx : 1 = false;
  bool misdone : 1 = false;   ///< the recording ends where it has been executed: see InsnDetails
  bool reverses : 1 = false;  ///< MOVBE: memory has the bytes of the register the other way round
  MmxUse mmx = MmxUse::none;
  std::uint8_t operand_bytes = 4;  ///< of strings, ports, far RET; a field of an x87 environment
  std::uint8_t port = 0;           ///< when it is an immediate
  std::uint8_t data_segment = 3;   ///< of x87: encoding order ES CS SS DS FS GS
  std::uint16_t stack_segment_at = 0;  ///< of IRET, far RET: where SS is, from the first access on
  std::uint16_t fpu_opcode = 0;        ///< of x87: what FOP becomes
  std::uint8_t modrm_offset = 0;       ///< where bytes after the opcode begin
  std::uint8_t rex = 0;                ///< the REX prefix, 0 without
  std::uint8_t address_bytes = 4;      ///< of an effective address: 2, 4 or 8
  std::int8_t segment_override = -1;   ///< encoding order ES CS SS DS FS GS, -1: there is none
  std::uint8_t destination = 0;        ///< of RDRAND and RDSEED: the general register
  /// Through which segments its data are reached: encoding order, kNoSegment for none, or where
  /// nobody looks (segment_use.h).
  static constexpr std::int8_t kNoSegment = -1;
  std::int8_t loads_from = kNoSegment, stores_to = kNoSegment;
  std::uint8_t loaded_segments = 0;  ///< segment registers that it loads, a bit for each
};

/// Facts that are seldom needed, and then found again from the instruction's bytes.
struct InsnDetails : InsnClass {
  MemoryOperand
      operand;  ///< its first access, or what it flushes; of FXSAVE, XSAVE and their like all
  /// Why the recording ends where it has been executed, or where it was refused with #UD: the
  /// emulator is not a processor there.
  const char* why_misdone = nullptr;
  const char* unknown = nullptr;
};

/// Classifies one instruction of a segment with the given default size by the table of opcodes
/// (x86/decode). `bytes` holds all of it. One that is cut short is plain, and so is one that no
/// processor has, but for AVX and its successors.
InsnDetails classify(std::span<const std::uint8_t> bytes, CodeSize size);

/// The mask of the bits that an address of so many bytes has.
inline std::uint64_t address_mask(unsigned bytes) {
  return bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
}

/// Whether the instruction moves an x87 environment.
bool moves_environment(InsnKind kind);

/// XSAVE and its relatives, XGETBV, XSETBV.
bool is_of_extended_state(InsnKind kind);

/// INT n and its relatives, ICEBP: their delivery ends them, and in real mode the emulator does not
/// report it.
bool delivers_itself(InsnKind kind);

/// Whether the instruction loads CS, and may switch tasks.
bool loads_code_segment(InsnKind kind);

/// Memory accesses that one iteration of a string instruction makes in the emulator, 0 for others.
/// INS stores twice: a zero first, to be restartable, then the value.
unsigned accesses_per_iteration(InsnKind kind);

}  // namespace citcat::monitor
