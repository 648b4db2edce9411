#pragma once
// What a recorder must know of an instruction beforehand: whether it repeats, talks to ports, uses
// values that cross no bus, or changes how memory is reached.

#include <cstdint>
#include <span>

namespace citcat::monitor {

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
  rdmsr,
  wrmsr,
  rdpmc,
  control_register,  ///< MOV CRn, LMSW: paging or caching may change
  descriptor_table,  ///< LGDT, LLDT: where descriptors are
  invlpg,
  invd,
  wbinvd,
  software_interrupt,
  push_segment,
  pop_segment,
  pop_all,
  iret,
  far_return,
  far_transfer,  ///< JMP and CALL to another segment
  fxsave,
  fxrstor,
  x87,          ///< sets the pointers to the last x87 instruction and operand
  x87_init,     ///< FNINIT: clears them
  x87_load,     ///< FLDENV, FRSTOR: loads them
  x87_store,    ///< FNSTENV: stores them
  x87_save,     ///< FNSAVE: stores and clears them
  unsupported,  ///< moves state that no replayer holds (XSAVE and its relatives)
};

struct InsnClass {
  InsnKind kind = InsnKind::plain;
  bool repeated = false;          ///< a string instruction under REP, REPE or REPNE
  bool updates_memory = false;    ///< reads its memory operand, then writes it
  bool loads_cr3 = false;         ///< MOV CR3
  bool marks_descriptor = false;  ///< what it stores in protected mode is a descriptor's type
  bool calls_system = false;      ///< INT 80h, SYSENTER: how programs of Linux on i386 do
  bool branch = false;            ///< may continue at its own address without having been restarted
  std::uint8_t operand_bytes = 4;  ///< of IN, OUT, INS, OUTS; of a field of an x87 environment
  bool port_in_dx = false;
  std::uint16_t stack_segment_at = 0;  ///< of IRET, far RET: where SS is, from the first access on
  std::uint8_t port = 0;               ///< when it is an immediate
  std::uint16_t fpu_opcode = 0;        ///< of x87: what FOP becomes
  std::uint8_t data_segment = 3;       ///< of x87: encoding order ES CS SS DS FS GS
  // To find the memory operand of FXSAVE and FXRSTOR:
  std::uint8_t modrm_offset = 0;
  bool address16 = false;
  int segment_override = -1;  ///< encoding order ES CS SS DS FS GS, -1 when there is none
};

/// Classifies one instruction of a segment with the given default size (Intel SDM vol. 2, A.3).
/// `bytes` holds all of it; a cut instruction is plain.
InsnClass classify(std::span<const std::uint8_t> bytes, bool code32);

/// Whether the instruction moves an x87 environment.
bool moves_environment(InsnKind kind);

/// Whether the instruction loads CS, and may switch tasks.
bool loads_code_segment(InsnKind kind);

/// Memory accesses that one iteration of a string instruction makes in the emulator, 0 for others.
/// INS stores twice: a zero first, to be restartable, then the value.
unsigned accesses_per_iteration(InsnKind kind);

}  // namespace citcat::monitor
