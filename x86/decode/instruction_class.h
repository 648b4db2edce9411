#pragma once
// Classes of instructions that the replayer treats alike.

#include <cstdint>

namespace citcat {

/// What the replayer must know to treat an instruction specially. `plain` needs nothing.
enum class InstructionClass : std::uint8_t {
  plain,
  string,  ///< MOVS CMPS STOS LODS SCAS, with or without a repeat prefix
           ///< (DecodedInstruction::repeat)
  ins,     ///< with or without a repeat prefix
  outs,
  in,
  out,
  hlt,
  // Control flow.
  jcc,       ///< conditional jump, direct
  loop,      ///< LOOP LOOPE LOOPNE JCXZ
  jump,      ///< near, direct or indirect
  call,      ///< near, direct or indirect
  ret,       ///< near
  far_jump,  ///< direct or through memory
  far_call,
  far_return,
  iret,
  int_n,  ///< INT imm8; DecodedInstruction::immediate is the vector
  int3,
  into,
  icebp,
  bound,
  sysenter,
  sysexit,
  syscall,
  sysret,
  swapgs,
  segment_base,  ///< RDFSBASE and its like; DecodedInstruction::reg_field says which
  rsm,
  loadall,  ///< 80286 0F 05
  // Segments.
  push_segment,
  pop_segment,       ///< DecodedInstruction::reg_field is the SegmentRegister
  mov_to_segment,    ///< the same
  load_far_pointer,  ///< LES LDS LSS LFS LGS; the same
  // System.
  mov_to_cr,  ///< DecodedInstruction::reg_field is the number
  mov_from_cr,
  mov_to_dr,
  mov_from_dr,
  lmsw,
  smsw,  ///< to a register of 32 bits alone; any other is `plain`
  clts,
  access_flag,  ///< STAC, CLAC
  invlpg,
  invpcid,
  cache_flush,  ///< INVD, WBINVD
  lgdt,
  lidt,
  lldt,
  ltr,
  cpuid,
  rdtsc,
  rdtscp,
  rdpmc,
  rdpid,
  random,  ///< RDRAND, RDSEED
  rdmsr,
  wrmsr,
  xgetbv,
  xsetbv,
  cli,
  sti,
  pushf,
  popf,
  newer_integer,  ///< of BMI1, BMI2, LZCNT, MOVBE, ADX: executed by the machine
  // Floating point and vectors.
  x87,  ///< D8..DF, with FWAIT as `fwait`
  fwait,
  fxsave,
  fxrstor,
  xsave,  ///< XSAVEOPT and XSAVEC too
  xrstor,
  emms,
  mmx,
  sse_fp,  ///< arithmetic, comparison or conversion of floating point: touches MXCSR
  sse,     ///< moves, shuffles, logic and integer: no MXCSR flag can change
  ldmxcsr,
  stmxcsr,
};

}  // namespace citcat
