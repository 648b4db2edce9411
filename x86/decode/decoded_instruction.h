#pragma once
// One instruction, decoded once: what the replayer needs to know about it and its memory operands.
//
// The replayer meets the same few thousand instructions millions of times. Decoding may therefore
// be slow, but its result must be enough to compute every data address from the registers before
// the instruction with a few additions: MemoryOperand holds that.

#include <array>
#include <cstdint>
#include <span>

#include "events/machine/address.h"
#include "events/machine/cpu_state.h"
#include "x86/decode/instruction_class.h"
#include "x86/decode/opcode_row.h"
#include "x86/decode/register_effect.h"

namespace citcat {

/// How the processor interprets code bytes at the time.
struct CodeMode {
  bool bits32 = false;      ///< CS.D: default operand and address size is 32 bits
  bool real_or_v86 = true;  ///< CR0.PE clear or EFLAGS.VM set
  bool bits64 = false;      ///< 64-bit mode: EFER.LMA and CS.L set, whatever bits32 says
  bool has_tzcnt = false;   ///< BSF after F3 is TZCNT
  bool has_lzcnt = false;   ///< BSR after F3 is LZCNT
  bool escapes = false;     ///< no coprocessor takes ESC; for processors before the 286
  bool operator==(const CodeMode&) const = default;
};

enum class DecodeState : std::uint8_t {
  ok,
  needs_more_bytes,  ///< the bytes given are a proper prefix of some instruction
  invalid,           ///< the processor raises an exception instead; see InvalidReason
};

enum class InvalidReason : std::uint8_t {
  none,
  undefined_opcode,  ///< #UD (vector 6)
  lock_prefix,       ///< #UD: LOCK on a form for which this processor refuses it
  too_long,          ///< #GP(0): more bytes than this processor takes
};

/// rep is also REPE (F3). REPC and REPNC are NEC's 65 and 64, only for CMPS and SCAS.
enum class RepeatPrefix : std::uint8_t { none, rep, repne, repc, repnc };

enum class OperandKind : std::uint8_t {
  address,             ///< base + index * scale + displacement
  absolute,            ///< displacement alone (moffs)
  address_after_pop,   ///< POP m with ESP as base: ESP counts after the increment
  bit_string,          ///< BT* m, r: the unit that holds bit `bit_register` from the base address
  table,               ///< XLAT: (E)BX + AL
  string_source,       ///< (E)SI
  string_destination,  ///< (E)DI
  stack_push,          ///< displacement below ESP
  stack_pop,           ///< displacement above ESP
  frame,               ///< below EBP, with the stack's width: LEAVE, ENTER with nesting
};

inline constexpr std::int8_t kNoRegister = -1;
/// As a base: where the instruction itself begins, which the engine keeps after R15. Only in
/// 64-bit mode, where displacements count from there and not from the next instruction.
inline constexpr std::int8_t kRip = 16;

/// Which bits of an offset count.
enum class AddressWidth : std::uint8_t {
  bits16,
  bits32,
  stack,  ///< by SS.B at run time
  low32,  ///< 32, in 64-bit mode: the base may have more
  bits64,
};
constexpr bool is_of_64_bit_mode(AddressWidth width) { return width >= AddressWidth::low32; }

/// Bits of a REX prefix (Intel SDM vol. 2, 2.2.1).
enum RexBit : std::uint8_t { kRexB = 1, kRexX = 2, kRexR = 4, kRexW = 8 };

/// One access of an instruction, or `count` accesses `stride` bytes apart.
struct MemoryOperand {
  std::int64_t displacement = 0;
  std::uint16_t size = 0;  ///< bytes of one access (1..416)
  OperandKind kind = OperandKind::address;
  AddressWidth width = AddressWidth::bits32;
  SegmentRegister segment : 8 = kDs;
  std::int8_t base = kNoRegister;          ///< Gpr, or kRip; R8 to R15 follow
  std::int8_t index = kNoRegister;         ///< Gpr
  std::uint8_t shift = 0;                  ///< log2 of the scale
  std::int8_t bit_register = kNoRegister;  ///< Gpr with the bit offset, for bit_string
  std::uint8_t count = 1;                  ///< accesses; 2 for BOUND, 8 for PUSHA ...
  std::int8_t stride = 0;                  ///< from one access to the next
  bool read = false;
  bool write = false;              ///< with `read`: read-modify-write, the write comes last
  bool conditional_write = false;  ///< may leave memory alone (shift by 0, MASKMOVQ)
  bool interleaved = false;        ///< access i of the next operand follows access i of this
};

/// Where an effective address of a KT record comes from (docs/formats/kt.md).
enum class EaSource : std::uint8_t {
  operand,     ///< argument is a number into DecodedInstruction::operands
  target,      ///< branch target, taken or not
  stack_push,  ///< ESP - argument: first pushed item
  stack_pop,   ///< ESP
  frame,       ///< EBP
  reg,         ///< CS base + Gpr number `argument`: indirect jump or call through a register
};

struct EaSlot {
  EaSource source = EaSource::operand;
  std::uint8_t argument = 0;
};

inline constexpr int kMaxOperands = 4;
inline constexpr int kMaxInstructionBytes = 15;

/// Everything the replayer knows about one instruction at one place.
struct DecodedInstruction {
  DecodeState state = DecodeState::invalid;
  InvalidReason reason = InvalidReason::none;
  InstructionClass kind = InstructionClass::plain;
  /// Its row in the table of opcodes. Null unless state is ok, and for undefined encodings, which
  /// the 8088 executes in its own way.
  const OpcodeRow* row = nullptr;
  FlagRule flag_rule = FlagRule::none;
  RepeatPrefix repeat = RepeatPrefix::none;  ///< effective: set only on string and port strings

  std::uint8_t length = 0;  ///< with prefixes; 0 unless state is ok
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};

  std::uint8_t opcode = 0;      ///< last opcode byte, as executed (aliases resolved)
  std::uint8_t opcode_map = 0;  ///< OpcodeMap: 0 one byte, 1 after 0F, 2 after 0F 38, ..
  std::uint8_t modrm = 0;       ///< 0 when there is none
  bool has_modrm = false;
  bool register_form = false;     ///< has_modrm and mod = 3
  std::uint8_t reg_field = 0;     ///< ModRM.reg, or the segment register of 06/07/0E/16/..
  std::uint8_t rm_field = 0;      ///< ModRM.rm, or the register in the opcode (40..5F, 90..97 ..)
  std::uint8_t prefix_bytes = 0;  ///< bytes before the opcode (before 0F where there is one)
  bool bits64 = false;            ///< CodeMode it was decoded in
  std::uint8_t rex = 0;           ///< the REX prefix, or its bits in a VEX prefix, or 0
  std::uint8_t vex_register = 0;  ///< the general register that a VEX prefix names
  bool lock = false;              ///< F0 present
  bool lock_ignored = false;      ///< F0 present and without effect on this processor (286 and
                                  ///< 8088 on any form): an engine that refuses it must not see it
  bool aliased = false;           ///< an undocumented encoding; `canonical` has the documented one
  bool operand_prefix = false;    ///< 66 present
  bool address_prefix = false;    ///< 67 present
  std::uint8_t mandatory_prefix = 0;  ///< last of 66, F2, F3 that selects an SSE form, else 0
  std::int8_t segment_override = -1;  ///< SegmentRegister, or -1
  std::uint8_t operand_bytes = 0;   ///< effective: 1, 2, 4 or 8; for vector instructions the mode's
  std::uint8_t address_bits = 32;   ///< effective address size: 16, 32 or 64
  bool control_flow = false;        ///< may continue elsewhere than at the next instruction
  bool ends_block = false;          ///< the engine ends a translation block here, or the machine
                                    ///< must look before the next instruction
  bool indirect = false;            ///< jump or call through a register or memory
  bool shadows_interrupts = false;  ///< POP SS, MOV SS, STI: the next instruction runs first

  std::uint32_t immediate = 0;  ///< zero-extended first immediate (vector, port, count, ..); of
                                ///< eight bytes the low four
  std::int32_t target_displacement = 0;  ///< direct near branch: from the next instruction
  std::uint32_t far_offset = 0;          ///< direct far branch
  std::uint16_t far_selector = 0;
  bool real_or_v86 = true;       ///< CodeMode it was decoded in
  std::int32_t stack_delta = 0;  ///< change of ESP when it completes; LEAVE, IRET and loads of
                                 ///< ESP itself are not described (0)

  RegisterEffect registers;

  std::uint8_t operand_count = 0;
  std::array<MemoryOperand, kMaxOperands> operands{};  ///< in the order of the accesses

  std::uint8_t ea_count = 0;  ///< E of the KT record
  std::array<EaSlot, 2> ea{};

  /// The same instruction, of the same length, in an encoding that every engine accepts: an alias
  /// is replaced by the documented encoding (F6 /1 by F6 /0, ..), and each LOCK by a segment prefix
  /// that names the segment in use anyway. Equal to `bytes` if there is neither. A processor that
  /// is alone on its bus computes the same with and without LOCK.
  std::array<std::uint8_t, kMaxInstructionBytes> canonical{};

  bool is_repeated() const { return repeat != RepeatPrefix::none; }
  /// The number that a bit of the REX prefix adds to the number of a register: 8 if it is set.
  unsigned rex_bit(RexBit bit) const { return (rex & bit) != 0 ? 8 : 0; }
  bool is(Operation operation) const { return row != nullptr && row->operation == operation; }
};

/// Decodes the instruction at the start of `bytes` (at most 15 are examined) as `model` would.
/// CpuModel::unknown decodes as a Pentium III with SSE2. Never throws.
DecodedInstruction decode_instruction(std::span<const std::uint8_t> bytes, CodeMode mode,
                                      CpuModel model);

/// True if an operand not aligned to 16 bytes causes #GP(0) (SDM vol. 2, exceptions of types 1, 2,
/// 4, FXSAVE, FXRSTOR, CMPXCHG16B): all of 16 bytes but those of MOVUPS, MOVUPD, MOVDQU and LDDQU.
inline bool wants_aligned_operand(const DecodedInstruction& info) {
  if (info.register_form || info.operand_count == 0) return false;
  if (info.kind == InstructionClass::fxsave || info.kind == InstructionClass::fxrstor) return true;
  if (info.is(Operation::cmpxchg8b)) return info.operands[0].size == 16;
  const bool vector = info.kind == InstructionClass::sse || info.kind == InstructionClass::sse_fp;
  return vector && info.has_modrm && info.operands[0].size == 16 && !info.row->has(kTakesUnaligned);
}

inline bool is_enter(const DecodedInstruction& info) { return info.is(Operation::enter); }

/// The count of a shift or rotation, with all its bits; `cl` is the low byte of ECX before it.
inline unsigned shift_count(const DecodedInstruction& info, std::uint8_t cl) {
  if (info.row == nullptr) return 0;
  if (info.row->operands[1] == OperandForm::One) return 1;
  const bool by_cl =
      info.row->operands[1] == OperandForm::CL || info.row->operands[2] == OperandForm::CL;
  return by_cl ? cl : info.immediate;
}

/// The bits of the count that the processor uses (SDM vol. 2, SAL); the 8088 uses all.
inline unsigned shift_count_bits(const DecodedInstruction& info) {
  return info.operand_bytes == 8 ? 0x3f : 0x1f;
}

/// LAR, LSL, VERR and VERW: they read a descriptor and load nothing.
inline bool looks_up_descriptor(const DecodedInstruction& info) {
  return info.is(Operation::lar) || info.is(Operation::lsl) || info.is(Operation::verr) ||
         info.is(Operation::verw);
}

/// The width of explicit and string operands by the address size of `info`.
constexpr AddressWidth address_width(const DecodedInstruction& info) {
  if (info.address_bits == 64) return AddressWidth::bits64;
  if (info.address_bits == 16) return AddressWidth::bits16;
  return info.bits64 ? AddressWidth::low32 : AddressWidth::bits32;
}

/// `value` under an offset mask.
constexpr std::uint64_t wrap_offset(std::uint64_t value, AddressWidth width, bool stack32) {
  if (width == AddressWidth::bits64) return value;
  const bool wide = width == AddressWidth::bits32 || width == AddressWidth::low32 ||
                    (width == AddressWidth::stack && stack32);
  return wide ? static_cast<std::uint32_t>(value) : value & 0xffff;
}

/// The bits of a count or pointer register that an address size of `bits` uses.
constexpr std::uint64_t address_mask(unsigned bits) {
  return bits == 64 ? ~std::uint64_t{0} : bits == 32 ? 0xffffffff : 0xffff;
}

/// The linear address of an offset of this width in a segment at `base`, which in 64-bit mode is 0
/// except for FS and GS.
constexpr LinearAddr linear_at(std::uint64_t base, std::uint64_t offset, AddressWidth width) {
  if (is_of_64_bit_mode(width)) return LinearAddr{base + offset};
  return linear32(static_cast<std::uint32_t>(base), static_cast<std::uint32_t>(offset));
}

/// The parts of an offset that a simple addition does not give; see operand_offset().
std::uint64_t special_operand_offset(const MemoryOperand& operand, const std::uint64_t* regs,
                                     bool stack32);

/// Offset of the first access of `operand` in its segment, from the registers *before* the
/// instruction (for a repeated string: before the iteration). `regs` are the eight general
/// registers in encoding order, low 32 bits valid, or, for an instruction of 64-bit mode, sixteen
/// and RIP; stack32 is SS.B.
inline std::uint64_t operand_offset(const MemoryOperand& operand, const std::uint64_t* regs,
                                    bool stack32) {
  if (operand.kind == OperandKind::address_after_pop || operand.kind == OperandKind::bit_string ||
      operand.kind == OperandKind::table) [[unlikely]] {
    return special_operand_offset(operand, regs, stack32);
  }
  auto offset = static_cast<std::uint64_t>(operand.displacement);
  if (operand.base >= 0) offset += regs[operand.base];
  if (operand.index >= 0) offset += regs[operand.index] << operand.shift;
  return wrap_offset(offset, operand.width, stack32);
}

/// Offset of access number `i` (0-based) of an operand whose first offset is `first`.
inline std::uint64_t access_offset(const MemoryOperand& operand, std::uint64_t first, unsigned i,
                                   bool stack32) {
  return wrap_offset(
      first + static_cast<std::uint64_t>(std::int64_t{operand.stride} * static_cast<int>(i)),
      operand.width, stack32);
}

/// Linear address of the first access. `segment_bases` are the six bases in SegmentRegister order.
inline LinearAddr operand_linear(const MemoryOperand& operand, const std::uint64_t* regs,
                                 const std::uint64_t* segment_bases, bool stack32) {
  return linear_at(segment_bases[operand.segment], operand_offset(operand, regs, stack32),
                   operand.width);
}

/// One access as the processor makes it.
struct DataAccess {
  LinearAddr linear;
  std::uint64_t offset = 0;
  std::uint16_t size = 0;
  bool write = false;
  std::uint8_t operand = 0;  ///< number into DecodedInstruction::operands
};

/// Calls visit(const DataAccess&) for every access of one execution (one iteration of a repeated
/// string) in the processor's order: reads of a read-modify-write at their place, its write last.
/// Accesses of descriptor tables, task segments and interrupt frames are not among them.
template <typename Visitor>
void for_each_access(const DecodedInstruction& info, const std::uint64_t* regs,
                     const std::uint64_t* segment_bases, bool stack32, Visitor&& visit) {
  std::array<std::uint64_t, kMaxOperands> first{};
  const auto access = [&](unsigned number, unsigned i, bool write) {
    const MemoryOperand& operand = info.operands[number];
    DataAccess a;
    a.offset = access_offset(operand, first[number], i, stack32);
    a.linear = linear_at(segment_bases[operand.segment], a.offset, operand.width);
    a.size = operand.size;
    a.write = write;
    a.operand = static_cast<std::uint8_t>(number);
    visit(static_cast<const DataAccess&>(a));
  };
  for (unsigned n = 0; n < info.operand_count; ++n) {
    first[n] = operand_offset(info.operands[n], regs, stack32);
  }
  for (unsigned n = 0; n < info.operand_count; ++n) {
    const MemoryOperand& operand = info.operands[n];
    if (!operand.read && !operand.write) continue;  // INVLPG: an address, no access
    const bool paired = operand.interleaved && n + 1 < info.operand_count;
    for (unsigned i = 0; i < operand.count; ++i) {
      access(n, i, !operand.read);
      if (paired) access(n + 1, i, !info.operands[n + 1].read);
    }
    if (paired) ++n;
  }
  for (unsigned n = 0; n < info.operand_count; ++n) {
    const MemoryOperand& operand = info.operands[n];
    if (!operand.read || !operand.write) continue;
    for (unsigned i = 0; i < operand.count; ++i) access(n, i, true);
  }
}

/// Linear effective address number `slot` of the KT record. `ip` is the offset of the instruction
/// in CS. The target of a direct far branch is selector * 16 + offset in real and virtual-8086
/// mode and the bare offset in protected mode (true for flat code segments).
LinearAddr kt_address(const DecodedInstruction& info, unsigned slot, std::uint64_t ip,
                      const std::uint64_t* regs, const std::uint64_t* segment_bases, bool stack32);

}  // namespace citcat
