#pragma once
// One row of the table of opcodes (opcodes.def): everything that is known about an opcode.

#include <array>
#include <cstddef>
#include <cstdint>

#include "events/machine/cpu_traits.h"
#include "x86/decode/flag_facts.h"
#include "x86/decode/instruction_class.h"
#include "x86/decode/operation.h"

namespace citcat {

/// The bytes before the opcode: none, 0F, 0F 38, 0F 3A, or a VEX prefix that stands for the latter
/// two. `escape`: none, and the opcode is for a coprocessor that is absent or does not have it.
/// `n0F`: 0F on NEC's processors.
enum class OpcodeMap : std::uint8_t { one, m0F, m38, m3A, v38, v3A, escape, n0F };
inline constexpr std::size_t kOpcodeMaps = 8;

/// Where an operand is and how wide, by the codes of the Intel SDM vol. 2, A.2. First letter: E
/// ModRM.rm, a register or memory; M memory alone; G ModRM.reg; Z the low bits of the opcode; I
/// immediate; J displacement of a branch; O an address without ModRM; X and Y the strings; P and Q
/// MMX by reg and rm; V and W XMM by reg and rm; S, C, D segment, control and debug registers.
/// Second: b, w, d, q, x for 1, 2, 4, 8 and 16 bytes; v 2, 4 or 8 by operand size, y 4 or 8.
// clang-format off
enum class OperandForm : std::uint8_t {
  no,
  Eb, Ew, Ed, Ey, Ev,
  Rd,                ///< the register of ModRM.rm, whatever ModRM.mod is; all of it in 64-bit mode
  RvMw, RdMb, RdMw,  ///< a register of v or d, memory of b or w
  Mb, Mw, Md, My, Mq, Mx, Mv,
  M,                 ///< an address that is not accessed
  Ma,                ///< two bounds of v
  Mp,                ///< offset of v, then selector
  Ms,                ///< limit and base: six bytes, ten in 64-bit mode
  Mt,                ///< ten bytes
  Menv, Msave,       ///< x87 environment, 14 or 28 bytes; with registers 94 or 108
  Mfx,               ///< the area of FXSAVE and FXRSTOR
  Mxs,               ///< the area of XSAVE and XRSTOR: legacy region and header
  Gb, Gw, Gd, Gy, Gv,
  By,                ///< the register that a VEX prefix names
  Zb, Zv,
  AL, rAX, CL, DX,   ///< rAX: AX or EAX
  One,               ///< the number 1
  Ib, Iw,
  Ibs,               ///< a byte, sign-extended to v
  Iz,                ///< of v, but 4 bytes, sign-extended, where v has 8
  Iv,                ///< of v
  Jb, Jz,
  Ap,                ///< offset of v and selector
  Ob, Ov,
  Xb, Xv, Yb, Yv,
  Fv,                ///< FLAGS or EFLAGS
  Sw, Cd, Dd,
  ES, CS, SS, DS, FS, GS,
  Pq, Qd, Qq,
  Vx, Wb, Ww, Wd, Wq, Wx,
  ST,                ///< x87: the stack's top, or ST(ModRM.rm) in a register form
};
// clang-format on

/// What happens to operand 1; the others are read.
enum class OperandAccess : std::uint8_t {
  reads,
  writes,
  updates,    ///< reads, then writes
  exchanges,  ///< updates operand 2 too
};

// clang-format off
/// Accesses to memory in the processor's order, and the addresses of the KT record.
enum class AccessPattern : std::uint8_t {
  none,
  operand,  ///< of the explicit operand, if that is in memory
  page,     ///< the operand's address alone counts: INVLPG
  parts,    ///< parts of the operand that registers and memory select: XSAVE
  push, push_all, push_operand, push_segment,
  pop, pop_all, pop_operand, pop_segment,
  load_segment,
  far_pointer,
  bound,
  string,
  xlat,
  enter, leave,
  branch,  ///< to a displacement
  call, ret,
  jump_indirect, call_indirect,
  jump_far, call_far, jump_far_indirect, call_far_indirect, ret_far,
  interrupt, iret,
  bit_string,
  masked_move,
};
// clang-format on

/// Which ModRM bytes a row is for.
struct ModRmMatch {
  bool present = false;
  bool memory = false, registers = false;
  std::int8_t reg = -1;  ///< ModRM.reg, or -1 for any
  std::int8_t rm = -1;   ///< ModRM.rm of a register form, or -1 for any
};

/// Column of a search among mandatory prefixes; `any` where none selects.
enum class MandatoryPrefix : std::uint8_t { np, p66, pF3, pF2, any };

/// The processors that have an opcode, a bit each: later ones lack some that earlier ones had.
struct ProcessorSet {
  std::uint16_t bits = 0;
  constexpr bool has(InstructionSet s) const { return (bits >> static_cast<unsigned>(s) & 1) != 0; }
};

/// Bits of OpcodeRow::traits.
enum OpcodeTrait : std::uint8_t {
  kLockable = 1,        ///< LOCK may precede it from the 386 on, with memory (SDM vol. 2, LOCK)
  kMayLeaveMemory = 2,  ///< may leave its operand in memory unwritten: a shift by 0
  kTakesUnaligned = 4,  ///< a 16-byte operand needs no alignment
  kNotIn64BitMode = 8,
  kProtectedMode = 16,  ///< #UD in real and virtual-8086 mode
  kOnly64BitMode = 32,
  kLongModeAlone = 64,  ///< not on processors without long mode
  kNewerMeaning = 128,  ///< replaces the row before it after F3, if CPUID says so
};

struct OpcodeRow {
  OpcodeMap map;
  std::uint8_t opcode;  ///< the first
  std::uint8_t count;   ///< how many opcodes from there on
  ModRmMatch modrm;
  MandatoryPrefix prefix;
  Operation operation;
  std::array<OperandForm, 3> operands;
  OperandAccess access;
  std::uint8_t registers;  ///< bit g: writes Gpr g, other than as an operand
  InstructionClass kind;
  AccessPattern accesses;
  FlagFacts flags;
  ProcessorSet processors;
  std::uint8_t traits;

  constexpr bool has(OpcodeTrait trait) const { return (traits & trait) != 0; }
};

}  // namespace citcat
