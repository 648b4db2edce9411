// Decoding in four steps: prefixes; undocumented encodings turned into documented ones; Zydis for
// lengths, explicit operands and the bulk of the invalid forms; and one switch per opcode map for
// what Zydis does not tell: the order of accesses, implicit ones, and what the replayer must do.
//
// Opcode facts are from the Intel SDM vol. 2 (appendix A for the maps) and, for processors before
// the 386, from the iAPX 86/88 and 80286 manuals; undocumented 8088 encodings follow its decoder,
// which ignores bits of the opcode where the manual has gaps.

#include "replay/instruction_info.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <optional>

#include "formats/error.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

bool is_16_bit_processor(CpuModel model) {
  return model == CpuModel::i8088 || model == CpuModel::i286;
}

/// Instruction bytes beyond which the processor raises #GP: 10 on the 80286 (Programmer's Reference
/// Manual, interrupt 13), 15 from the 386 on. The 8088 has no limit; 15 is ours.
std::size_t length_limit(CpuModel model) { return model == CpuModel::i286 ? 10 : 15; }

// ---------------------------------------------------------------------------------------------
// Step 1: prefixes.

struct Prefixes {
  std::size_t count = 0;
  bool lock = false;
  bool operand = false;
  bool address = false;
  std::uint8_t repeat = 0;  ///< last of F2, F3
  std::int8_t segment = -1;
};

/// True when `byte` is a prefix of `model`, which is then noted in `prefixes`.
bool take_prefix(std::uint8_t byte, CpuModel model, Prefixes& prefixes) {
  switch (byte) {
    case 0x26:
      prefixes.segment = kEs;
      return true;
    case 0x2e:
      prefixes.segment = kCs;
      return true;
    case 0x36:
      prefixes.segment = kSs;
      return true;
    case 0x3e:
      prefixes.segment = kDs;
      return true;
    case 0xf0:
      prefixes.lock = true;
      return true;
    case 0xf2:
    case 0xf3:
      prefixes.repeat = byte;
      return true;
    case 0xf1:  // the 8088 decodes F0 and F1 alike; a prefix without effect on the 80286 too
      if (!is_16_bit_processor(model)) return false;
      prefixes.lock = true;
      return true;
    case 0x64:
    case 0x65:
      if (is_16_bit_processor(model)) return false;
      prefixes.segment = byte == 0x64 ? kFs : kGs;
      return true;
    case 0x66:
    case 0x67:
      if (is_16_bit_processor(model)) return false;
      (byte == 0x66 ? prefixes.operand : prefixes.address) = true;
      return true;
    default:
      return false;
  }
}

bool is_lock_byte(std::uint8_t byte, CpuModel model) {
  return byte == 0xf0 || (byte == 0xf1 && is_16_bit_processor(model));
}

std::uint8_t segment_prefix_byte(SegmentRegister segment) {
  constexpr std::array<std::uint8_t, 6> kBytes = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65};
  return kBytes[segment];
}

// ---------------------------------------------------------------------------------------------
// Step 2: encodings with a documented equivalent.

/// Rewrites opcode and ModRM at code[0], code[1] to the documented encoding of the same operation.
void resolve_8088_alias(std::span<std::uint8_t> code) {
  const auto set_reg = [&](unsigned reg) {
    if (code.size() > 1) code[1] = static_cast<std::uint8_t>((code[1] & 0xc7) | reg << 3);
  };
  const unsigned reg = code.size() > 1 ? (code[1] >> 3) & 7 : 0;
  switch (code[0]) {
    case 0xc0:
      code[0] = 0xc2;
      break;
    case 0xc1:
      code[0] = 0xc3;
      break;
    case 0xc8:
      code[0] = 0xca;
      break;
    case 0xc9:
      code[0] = 0xcb;
      break;
    case 0x8c:
    case 0x8e:
      set_reg(reg & 3);
      break;  // three bits name four registers
    case 0x8f:
    case 0xc6:
    case 0xc7:
      set_reg(0);
      break;                         // ModRM.reg is not decoded
    case 0xfe:                       // /2../7 drive the word circuits with a byte operand; the
      if (reg >= 2) code[0] = 0xff;  // word form has the same length and the same addresses
      if (reg == 7) set_reg(6);
      break;
    case 0xff:
      if (reg == 7) set_reg(6);
      break;
    default:
      if (code[0] >= 0x60 && code[0] <= 0x6f) code[0] = static_cast<std::uint8_t>(code[0] + 0x10);
  }
}

void resolve_alias(std::span<std::uint8_t> code, CpuModel model) {
  if (model == CpuModel::i8088) resolve_8088_alias(code);
  if ((code[0] == 0xf6 || code[0] == 0xf7) && code.size() > 1 && ((code[1] >> 3) & 7) == 1) {
    code[1] = static_cast<std::uint8_t>(code[1] & 0xc7);  // TEST, on every processor
  }
  if (code[0] == 0x82) code[0] = 0x80;
}

// ---------------------------------------------------------------------------------------------
// Step 3: what each processor has.

/// 0F opcodes of the 80386 (Programmer's Reference Manual, appendix A), as a bit per opcode.
bool has_386_0f_opcode(unsigned opcode, unsigned reg) {
  switch (opcode) {
    case 0x00:
      return reg <= 5;
    case 0x01:
      return reg <= 4 || reg == 6;
    case 0x02:
    case 0x03:
    case 0x06:
      return true;
    case 0x20:
    case 0x21:
    case 0x22:
    case 0x23:
    case 0x24:
    case 0x26:
      return true;
    case 0xa0:
    case 0xa1:
    case 0xa3:
    case 0xa4:
    case 0xa5:
      return true;
    case 0xa8:
    case 0xa9:
    case 0xab:
    case 0xac:
    case 0xad:
    case 0xaf:
      return true;
    case 0xb2:
    case 0xb3:
    case 0xb4:
    case 0xb5:
    case 0xb6:
    case 0xb7:
      return true;
    case 0xba:
      return reg >= 4;
    case 0xbb:
    case 0xbc:
    case 0xbd:
    case 0xbe:
    case 0xbf:
      return true;
    default:
      return opcode >= 0x80 && opcode <= 0x9f;
  }
}

/// 0F opcodes that came with the 486 (INVD, WBINVD, INVLPG, CPUID, RSM, CMPXCHG, XADD, BSWAP).
bool has_486_0f_opcode(unsigned opcode, unsigned reg) {
  return opcode == 0x08 || opcode == 0x09 || (opcode == 0x01 && reg == 7) || opcode == 0xa2 ||
         opcode == 0xaa || opcode == 0xb0 || opcode == 0xb1 || opcode == 0xc0 || opcode == 0xc1 ||
         (opcode >= 0xc8 && opcode <= 0xcf);
}

/// ... and with the Pentium, with and without MMX (RDTSC, RDMSR, WRMSR, CMPXCHG8B, MMX).
bool has_pentium_0f_opcode(unsigned opcode, unsigned reg, std::uint8_t mandatory) {
  if ((opcode >= 0x30 && opcode <= 0x32) || (opcode == 0xc7 && reg == 1)) return true;
  if (mandatory != 0) return false;
  const bool mmx = (opcode >= 0x60 && opcode <= 0x6b) || opcode == 0x6e || opcode == 0x6f ||
                   (opcode >= 0x71 && opcode <= 0x77) || opcode == 0x7e || opcode == 0x7f;
  if (mmx) return true;
  switch (opcode) {
    case 0xd1:
    case 0xd2:
    case 0xd3:
    case 0xd5:
    case 0xd8:
    case 0xd9:
    case 0xdb:
    case 0xdc:
    case 0xdd:
    case 0xdf:
    case 0xe1:
    case 0xe2:
    case 0xe5:
    case 0xe8:
    case 0xe9:
    case 0xeb:
    case 0xec:
    case 0xed:
    case 0xef:
    case 0xf1:
    case 0xf2:
    case 0xf3:
    case 0xf5:
    case 0xf8:
    case 0xf9:
    case 0xfa:
    case 0xfc:
    case 0xfd:
    case 0xfe:
      return true;
    default:
      return false;
  }
}

/// Whether `model` has this instruction of the two-byte map. `info` has its encoding filled in.
bool has_0f_opcode(const InstructionInfo& info, CpuModel model) {
  const unsigned opcode = info.opcode;
  const unsigned reg = info.reg_field;
  if (info.opcode_map > 1) return model == CpuModel::unknown || model == CpuModel::p6;
  if (opcode == 0x05 || opcode == 0x07) return false;  // SYSCALL, SYSRET: not on 32-bit Intel parts
  switch (model) {
    case CpuModel::i286:
      return (opcode == 0x00 && reg <= 5) || (opcode == 0x01 && (reg <= 4 || reg == 6)) ||
             opcode == 0x02 || opcode == 0x03 || opcode == 0x06;
    case CpuModel::i386:
      return has_386_0f_opcode(opcode, reg);
    case CpuModel::i486:
      return has_386_0f_opcode(opcode, reg) || has_486_0f_opcode(opcode, reg);
    case CpuModel::pentium:
      return opcode != 0x24 && opcode != 0x26 &&
             (has_386_0f_opcode(opcode, reg) || has_486_0f_opcode(opcode, reg) ||
              has_pentium_0f_opcode(opcode, reg, info.mandatory_prefix));
    default:
      return opcode != 0x24 && opcode != 0x26;
  }
}

/// One-byte opcodes that Zydis knows and `model` does not.
bool has_one_byte_opcode(const InstructionInfo& info, CpuModel model) {
  const unsigned reg = info.reg_field;
  if (model == CpuModel::i8088) return true;  // nothing is undefined there
  switch (info.opcode) {
    case 0x8c:
      return reg <= (model == CpuModel::i286 ? 3 : 5);
    case 0x8e:
      return reg != kCs && reg <= (model == CpuModel::i286 ? 3 : 5);
    case 0x8f:
    case 0xc6:
    case 0xc7:
      return reg == 0;
    default:
      return true;
  }
}

/// Forms that take LOCK from the 386 on (SDM vol. 2, LOCK): read-modify-write of memory by these.
bool is_lockable(const InstructionInfo& info) {
  if (!info.has_modrm || info.register_form) return false;
  const unsigned reg = info.reg_field;
  if (info.opcode_map == 1) {
    switch (info.opcode) {
      case 0xab:
      case 0xb3:
      case 0xbb:
      case 0xb0:
      case 0xb1:
      case 0xc0:
      case 0xc1:
        return true;
      case 0xba:
        return reg >= 5;
      case 0xc7:
        return reg == 1;
      default:
        return false;
    }
  }
  if (info.opcode_map != 0) return false;
  switch (info.opcode) {
    case 0x80:
    case 0x81:
    case 0x83:
      return reg != 7;
    case 0x86:
    case 0x87:
      return true;
    case 0xf6:
    case 0xf7:
      return reg == 2 || reg == 3;
    case 0xfe:
    case 0xff:
      return reg <= 1;
    default:
      return info.opcode < 0x32 && (info.opcode & 7) <= 1;  // ADD .. XOR, memory destination
  }
}

// ---------------------------------------------------------------------------------------------
// Step 4: meaning.

/// What FXSAVE and FXRSTOR touch of their 512-byte area outside 64-bit mode: header, eight x87 and
/// eight XMM registers (SDM vol. 1, table 10-2). The rest is reserved or the program's own.
constexpr unsigned kFxBytes = 32 + 8 * 16 + 8 * 16;

std::int8_t gpr_number(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE) return kNoRegister;
  const ZyanI8 id = ZydisRegisterGetId(reg);
  return id >= 0 && id < 8 ? static_cast<std::int8_t>(id) : kNoRegister;
}

SegmentRegister segment_number(ZydisRegister reg) {
  switch (reg) {
    case ZYDIS_REGISTER_ES:
      return kEs;
    case ZYDIS_REGISTER_CS:
      return kCs;
    case ZYDIS_REGISTER_SS:
      return kSs;
    case ZYDIS_REGISTER_FS:
      return kFs;
    case ZYDIS_REGISTER_GS:
      return kGs;
    default:
      return kDs;
  }
}

std::uint8_t scale_shift(unsigned scale) {
  return static_cast<std::uint8_t>(scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0);
}

/// Builds the operands, classes and KT rules of an instruction whose encoding is already in `info`.
class Describer {
 public:
  Describer(InstructionInfo& info, CpuModel model, const ZydisDecodedInstruction& decoded,
            std::span<const ZydisDecodedOperand> operands)
      : info_(info), model_(model), decoded_(decoded), zydis_operands_(operands) {
    const bool bits32 = (info.address_bits == 32) != info.address_prefix;
    word_ = bits32 != info.operand_prefix ? 4 : 2;
  }

  void run() {
    if (info_.opcode_map == 0) {
      describe_one_byte();
    } else if (info_.opcode_map == 1) {
      describe_two_byte();
    } else {
      add_explicit();
      classify_vector();
    }
    finish();
  }

 private:
  // --- operands ------------------------------------------------------------------------------

  MemoryOperand& add(const MemoryOperand& operand) {
    CITCAT_ASSERT(info_.operand_count < kMaxOperands);
    MemoryOperand& slot = info_.operands[info_.operand_count++];
    slot = operand;
    return slot;
  }

  AddressWidth address_width() const {
    return info_.address_bits == 16 ? AddressWidth::bits16 : AddressWidth::bits32;
  }

  const ZydisDecodedOperand* explicit_memory() const {
    for (const ZydisDecodedOperand& operand : zydis_operands_) {
      const bool ours = operand.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
      if (ours && operand.type == ZYDIS_OPERAND_TYPE_MEMORY) return &operand;
    }
    return nullptr;
  }

  /// The ModRM or moffs operand with Zydis' size and direction, not yet added.
  std::optional<MemoryOperand> make_explicit() const {
    const ZydisDecodedOperand* source = explicit_memory();
    if (source == nullptr || source->mem.type == ZYDIS_MEMOP_TYPE_AGEN) return std::nullopt;
    MemoryOperand operand;
    operand.kind = info_.has_modrm ? OperandKind::address : OperandKind::absolute;
    operand.width = address_width();
    operand.segment = segment_number(source->mem.segment);
    operand.base = gpr_number(source->mem.base);
    operand.index = gpr_number(source->mem.index);
    operand.shift = scale_shift(source->mem.scale);
    operand.displacement = static_cast<std::int32_t>(source->mem.disp.value);
    operand.size = static_cast<std::uint16_t>(source->size / 8);
    operand.read = (source->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    operand.write = (source->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    return operand;
  }

  MemoryOperand* add_explicit() {
    const std::optional<MemoryOperand> operand = make_explicit();
    if (!operand || operand->size == 0) return nullptr;
    return &add(*operand);
  }

  MemoryOperand* add_explicit(unsigned size, bool read, bool write) {
    std::optional<MemoryOperand> operand = make_explicit();
    if (!operand) return nullptr;
    operand->size = static_cast<std::uint16_t>(size);
    operand->read = read;
    operand->write = write;
    return &add(*operand);
  }

  /// Offset and selector of a far pointer in memory: two accesses, each wrapping on its own.
  void add_far_pointer(bool selector_first) {
    std::optional<MemoryOperand> offset = make_explicit();
    if (!offset) return;
    offset->size = word_;
    offset->read = true;
    MemoryOperand selector = *offset;
    selector.displacement += word_;
    selector.size = 2;
    add(selector_first ? selector : *offset);
    add(selector_first ? *offset : selector);
  }

  /// `count` pushes of `slot` bytes, of which `size` are written.
  void add_push(unsigned slot, unsigned count = 1, unsigned size = 0) {
    MemoryOperand operand;
    operand.kind = OperandKind::stack_push;
    operand.width = AddressWidth::stack;
    operand.segment = kSs;
    operand.base = kEsp;
    operand.displacement = info_.stack_delta - static_cast<std::int32_t>(slot);
    operand.size = static_cast<std::uint16_t>(size == 0 ? slot : size);
    operand.count = static_cast<std::uint8_t>(count);
    operand.stride = static_cast<std::int8_t>(-static_cast<int>(slot));
    operand.write = true;
    add(operand);
    info_.stack_delta -= static_cast<std::int32_t>(slot * count);
  }

  void add_pop(unsigned slot, unsigned count = 1, unsigned size = 0) {
    MemoryOperand operand;
    operand.kind = OperandKind::stack_pop;
    operand.width = AddressWidth::stack;
    operand.segment = kSs;
    operand.base = kEsp;
    operand.displacement = info_.stack_delta;
    operand.size = static_cast<std::uint16_t>(size == 0 ? slot : size);
    operand.count = static_cast<std::uint8_t>(count);
    operand.stride = static_cast<std::int8_t>(slot);
    operand.read = true;
    add(operand);
    info_.stack_delta += static_cast<std::int32_t>(slot * count);
  }

  void add_string(bool source, unsigned size, bool write) {
    MemoryOperand operand;
    operand.kind = source ? OperandKind::string_source : OperandKind::string_destination;
    operand.width = address_width();
    operand.segment = kEs;
    if (source) operand.segment = override_or(kDs);
    operand.base = source ? kEsi : kEdi;
    operand.size = static_cast<std::uint16_t>(size);
    operand.read = !write;
    operand.write = write;
    add(operand);
  }

  SegmentRegister override_or(SegmentRegister fallback) const {
    return info_.segment_override < 0 ? fallback
                                      : static_cast<SegmentRegister>(info_.segment_override);
  }

  // --- KT effective addresses ------------------------------------------------------------------

  void add_ea(EaSource source, unsigned argument = 0) {
    CITCAT_ASSERT(info_.ea_count < info_.ea.size());
    info_.ea[info_.ea_count++] = EaSlot{source, static_cast<std::uint8_t>(argument)};
  }
  void add_ea_operand(unsigned number) { add_ea(EaSource::operand, number); }

  // --- one-byte map ----------------------------------------------------------------------------

  void describe_one_byte() {
    const unsigned opcode = info_.opcode;
    if (opcode < 0x40) return describe_arithmetic_rows();
    if (opcode < 0x60) return describe_register_rows();
    switch (opcode) {
      case 0x60:
        return describe_stack_all(true);
      case 0x61:
        return describe_stack_all(false);
      case 0x62:
        return describe_bound();
      case 0x68:
      case 0x6a:
      case 0x9c:
        return describe_push();
      case 0x8f:
        return describe_pop_operand();
      case 0x9a:
      case 0xea:
        return describe_far_direct();
      case 0x9d:
        return describe_popf();
      case 0xc2:
      case 0xc3:
      case 0xca:
      case 0xcb:
        return describe_return();
      case 0xc4:
      case 0xc5:
        return describe_load_far_pointer(opcode == 0xc4 ? kEs : kDs);
      case 0xc8:
        return describe_enter();
      case 0xc9:
        return describe_leave();
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xf1:
        return describe_interrupt();
      case 0xcf:
        return describe_iret();
      case 0xd7:
        return describe_xlat();
      case 0xe8:
      case 0xe9:
      case 0xeb:
        return describe_near_direct();
      case 0xff:
        return describe_group5();
      default:
        break;
    }
    if (opcode >= 0x70 && opcode <= 0x7f) return describe_conditional(Kind::jcc);
    if (opcode >= 0xe0 && opcode <= 0xe3) return describe_conditional(Kind::loop);
    if (is_string(opcode)) return describe_string();
    describe_plain_one_byte();
  }

  static bool is_string(unsigned opcode) {
    return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
           (opcode >= 0xaa && opcode <= 0xaf);
  }

  void describe_arithmetic_rows() {
    const unsigned opcode = info_.opcode;
    if ((opcode & 7) >= 6) {
      switch (opcode) {
        case 0x27:
          info_.flag_rule = FlagRule::daa;
          return;
        case 0x2f:
          info_.flag_rule = FlagRule::das;
          return;
        case 0x37:
          info_.flag_rule = FlagRule::aaa;
          return;
        case 0x3f:
          info_.flag_rule = FlagRule::aas;
          return;
        default:
          break;
      }
      info_.reg_field = static_cast<std::uint8_t>(opcode >> 3 & 3);
      return (opcode & 1) == 0 ? describe_push_segment() : describe_pop_segment();
    }
    const unsigned operation = opcode >> 3;
    if (operation == 1 || operation == 4 || operation == 6) info_.flag_rule = FlagRule::logic;
    add_explicit();
    add_operand_eas();
  }

  void describe_register_rows() {
    info_.rm_field = info_.opcode & 7;
    if (info_.opcode >= 0x58) {
      add_pop(word_);
      add_ea(EaSource::stack_pop);
      if (info_.rm_field == kEsp) info_.stack_delta = 0;
    } else if (info_.opcode >= 0x50) {
      describe_push();
    }
  }

  void describe_push() {
    if (info_.opcode == 0x9c) info_.kind = Kind::pushf;
    add_ea(EaSource::stack_push, word_);
    add_push(word_);
  }

  // A 32-bit PUSH of a segment register moves ESP by four and writes only the two bytes of the
  // selector (SDM vol. 2, PUSH: "the segment selector is written on the stack using a 16-bit
  // move"); the upper half of the slot keeps what it held.
  void describe_push_segment() {
    info_.kind = Kind::push_segment;
    add_ea(EaSource::stack_push, word_);
    add_push(word_, 1, 2);
  }

  void describe_pop_segment() {
    info_.kind = Kind::pop_segment;
    add_pop(word_, 1, 2);
    add_ea(EaSource::stack_pop);
    note_segment_load();
  }

  void note_segment_load() {
    info_.shadows_interrupts = info_.reg_field == kSs || model_ == CpuModel::i8088;
    info_.control_flow = info_.reg_field == kCs;
    info_.ends_block = info_.shadows_interrupts || info_.control_flow;
  }

  void describe_stack_all(bool push) {
    if (push) {
      add_ea(EaSource::stack_push, word_);
      return add_push(word_, 8);
    }
    add_ea(EaSource::stack_pop);
    // The 80286 fetches AX, the last word, before the others (its bus in the single-step suite).
    if (model_ != CpuModel::i286) return add_pop(word_, 8);
    info_.stack_delta = 7 * word_;
    add_pop(word_);
    info_.stack_delta = 0;
    add_pop(word_, 7);
    info_.stack_delta = 8 * word_;
  }

  void describe_bound() {
    info_.kind = Kind::bound;
    MemoryOperand* bounds = add_explicit(word_, true, false);
    if (bounds == nullptr) return;
    bounds->count = 2;
    bounds->stride = static_cast<std::int8_t>(word_);
    add_ea_operand(0);
  }

  void describe_pop_operand() {
    add_pop(word_);
    if (info_.register_form) {
      if (info_.rm_field == kEsp) info_.stack_delta = 0;
      return add_ea(EaSource::stack_pop);
    }
    MemoryOperand* destination = add_explicit(word_, false, true);
    if (destination == nullptr) return;
    if (destination->base == kEsp) destination->kind = OperandKind::address_after_pop;
    add_ea_operand(1);
  }

  void describe_far_direct() {
    info_.kind = info_.opcode == 0x9a ? Kind::far_call : Kind::far_jump;
    add_ea(EaSource::target);
    if (info_.kind == Kind::far_jump) return;
    add_ea(EaSource::stack_push, word_);
    add_push(word_, 2);
  }

  void describe_popf() {
    info_.kind = Kind::popf;
    add_pop(word_);
    add_ea(EaSource::stack_pop);
  }

  void describe_return() {
    const bool far = info_.opcode >= 0xca;
    info_.kind = far ? Kind::far_return : Kind::ret;
    add_pop(word_, far ? 2 : 1);
    add_ea(EaSource::stack_pop);
    if ((info_.opcode & 1) == 0) info_.stack_delta += static_cast<std::int32_t>(info_.immediate);
  }

  void describe_load_far_pointer(SegmentRegister segment) {
    info_.kind = Kind::load_far_pointer;
    // LDS and its like read the offset first on the 80286's bus (single-step suite, C4 and C5); the
    // later machines seen read the selector first.
    const bool selector_first = !is_16_bit_processor(model_);
    add_far_pointer(selector_first);
    add_ea_operand(selector_first ? 1 : 0);
    const std::uint8_t reg = info_.reg_field;
    info_.rm_field = reg;  // the general register; the address is in the operands
    info_.reg_field = segment;
    info_.shadows_interrupts = segment == kSs;
    info_.ends_block = info_.shadows_interrupts;
  }

  // PUSH EBP; then for a nesting level L > 0, L-1 frame pointers copied from below EBP and the new
  // frame pointer pushed; then room for locals (SDM vol. 2, ENTER).
  void describe_enter() {
    add_ea(EaSource::stack_push, word_);
    add_push(word_);
    const unsigned level = static_cast<unsigned>(decoded_.raw.imm[1].value.u) & 31;
    if (level > 1) {
      MemoryOperand display;
      display.kind = OperandKind::frame;
      display.width = AddressWidth::stack;
      display.segment = kSs;
      display.base = kEbp;
      display.displacement = -static_cast<std::int32_t>(word_);
      display.size = word_;
      display.count = static_cast<std::uint8_t>(level - 1);
      display.stride = static_cast<std::int8_t>(-static_cast<int>(word_));
      display.read = true;
      display.interleaved = true;
      add(display);
      add_push(word_, level - 1);
    }
    if (level > 0) add_push(word_);
    info_.stack_delta -= static_cast<std::int32_t>(info_.immediate);
  }

  void describe_leave() {
    MemoryOperand operand;
    operand.kind = OperandKind::frame;
    operand.width = AddressWidth::stack;
    operand.segment = kSs;
    operand.base = kEbp;
    operand.size = word_;
    operand.read = true;
    add(operand);
    add_ea(EaSource::frame);
  }

  void describe_interrupt() {
    switch (info_.opcode) {
      case 0xcc:
        info_.kind = Kind::int3;
        break;
      case 0xcd:
        info_.kind = Kind::int_n;
        break;
      case 0xce:
        info_.kind = Kind::into;
        break;
      default:
        info_.kind = Kind::icebp;
    }
    add_ea(EaSource::stack_push, word_);
  }

  // The 80286 reads FLAGS, IP, CS (its bus in the single-step suite); later machines seen read
  // upward in real mode and FLAGS, CS, EIP in protected mode.
  void describe_iret() {
    info_.kind = Kind::iret;
    add_ea(EaSource::stack_pop);
    if (model_ == CpuModel::i286) {
      info_.stack_delta = 2 * word_;
      add_pop(word_);
      info_.stack_delta = 0;
      add_pop(word_, 2);
      info_.stack_delta = 3 * word_;
      return;
    }
    add_pop(word_, 3);
    if (info_.real_or_v86) return;
    info_.operands[0].displacement = 2 * word_;
    info_.operands[0].stride = static_cast<std::int8_t>(-static_cast<int>(word_));
  }

  void describe_xlat() {
    MemoryOperand operand;
    operand.kind = OperandKind::table;
    operand.width = address_width();
    operand.segment = override_or(kDs);
    operand.base = kEbx;
    operand.size = 1;
    operand.read = true;
    add(operand);
    add_ea_operand(0);
  }

  void describe_near_direct() {
    info_.kind = info_.opcode == 0xe8 ? Kind::call : Kind::jump;
    add_ea(EaSource::target);
    if (info_.kind == Kind::jump) return;
    add_ea(EaSource::stack_push, word_);
    add_push(word_);
  }

  void describe_conditional(Kind kind) {
    info_.kind = kind;
    add_ea(EaSource::target);
  }

  void describe_group5() {
    switch (info_.reg_field) {
      case 2:
        return describe_indirect_call();
      case 3:
        info_.kind = Kind::far_call;
        info_.indirect = true;
        add_far_pointer(false);
        add_ea_operand(0);
        add_ea(EaSource::stack_push, word_);
        return add_push(word_, 2);
      case 4:
        info_.kind = Kind::jump;
        info_.indirect = true;
        return add_indirect_ea();
      case 5:
        info_.kind = Kind::far_jump;
        info_.indirect = true;
        add_far_pointer(false);
        return add_ea_operand(0);
      case 6:
        add_ea(EaSource::stack_push, word_);
        if (add_explicit(word_, true, false) != nullptr) add_ea_operand(0);
        return add_push(word_);
      default:
        return describe_plain_one_byte();
    }
  }

  void describe_indirect_call() {
    info_.kind = Kind::call;
    info_.indirect = true;
    add_ea(EaSource::stack_push, word_);
    add_indirect_ea();
    add_push(word_);
  }

  void add_indirect_ea() {
    if (add_explicit(word_, true, false) != nullptr) return add_ea_operand(0);
    add_ea(EaSource::reg, info_.rm_field);
  }

  void describe_string() {
    const unsigned opcode = info_.opcode;
    const unsigned size = (opcode & 1) == 0 ? 1 : word_;
    info_.operand_bytes = static_cast<std::uint8_t>(size);
    info_.kind = Kind::string;
    note_repeat();
    switch (opcode & 0xfe) {
      case 0x6c:
        info_.kind = Kind::ins;
        add_string(false, size, true);
        break;
      case 0x6e:
        info_.kind = Kind::outs;
        add_string(true, size, false);
        break;
      case 0xa4:
        add_string(true, size, false);
        add_string(false, size, true);
        break;
      case 0xa6:
        return describe_compare_strings(size);
      case 0xaa:
        add_string(false, size, true);
        break;
      case 0xac:
        add_string(true, size, false);
        break;
      default:
        add_string(false, size, false);
        break;  // SCAS
    }
    for (unsigned i = 0; i < info_.operand_count; ++i) add_ea_operand(i);
  }

  // The 80286 reads ES:DI before DS:SI (seen on its bus in every CMPS of the single-step suite that
  // faults); KT lists the source first in any case.
  void describe_compare_strings(unsigned size) {
    const bool destination_first = model_ == CpuModel::i286;
    add_string(!destination_first, size, false);
    add_string(destination_first, size, false);
    add_ea_operand(destination_first ? 1 : 0);
    add_ea_operand(destination_first ? 0 : 1);
  }

  void note_repeat() {
    for (unsigned i = 0; i < info_.prefix_bytes; ++i) {
      if (info_.bytes[i] == 0xf3) info_.repeat = RepeatPrefix::rep;
      if (info_.bytes[i] == 0xf2) info_.repeat = RepeatPrefix::repne;
    }
  }

  /// Everything whose only memory operand is the explicit one.
  void describe_plain_one_byte() {
    const unsigned opcode = info_.opcode;
    MemoryOperand* operand = nullptr;
    if (opcode != 0x8d) operand = add_explicit();  // LEA computes an address, no more
    if (opcode >= 0xd8 && opcode <= 0xdf) info_.kind = Kind::x87;
    switch (opcode) {
      case 0x80:
      case 0x81:
      case 0x83:
        set_group1_flags();
        break;
      case 0x84:
      case 0x85:
      case 0xa8:
      case 0xa9:
        info_.flag_rule = FlagRule::logic;
        break;
      case 0x69:
      case 0x6b:
        info_.flag_rule = FlagRule::imul_two_operand;
        break;
      case 0x63:
        if (operand != nullptr) operand->conditional_write = true;
        break;
      case 0x86:
      case 0x87:
        break;
      case 0x8c:
        if (operand != nullptr) operand->size = 2;
        break;
      case 0x8e:
        if (operand != nullptr) operand->size = 2;
        info_.kind = Kind::mov_to_segment;
        note_segment_load();
        break;
      case 0x9b:
        info_.kind = Kind::fwait;
        break;
      case 0xc0:
      case 0xc1:
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:
        // /6 shifts left from the 286 on; the 8088 sets all bits.
        if (model_ != CpuModel::i8088 || info_.reg_field != 6) set_shift_flags();
        if (operand != nullptr) operand->conditional_write = opcode != 0xd0 && opcode != 0xd1;
        break;
      case 0xd4:
        info_.flag_rule = FlagRule::aam;
        break;
      case 0xd5:
        info_.flag_rule = FlagRule::aad;
        break;
      case 0xe4:
      case 0xe5:
      case 0xec:
      case 0xed:
        info_.kind = Kind::in;
        break;
      case 0xe6:
      case 0xe7:
      case 0xee:
      case 0xef:
        info_.kind = Kind::out;
        break;
      case 0xf4:
        info_.kind = Kind::hlt;
        break;
      case 0xf6:
      case 0xf7:
        set_group3_flags();
        break;
      case 0xfa:
        info_.kind = Kind::cli;
        break;
      case 0xfb:
        info_.kind = Kind::sti;
        info_.shadows_interrupts = true;
        break;
      default:
        break;
    }
    if (operand != nullptr) add_ea_operand(0);
  }

  void set_group1_flags() {
    const unsigned operation = info_.reg_field;
    if (operation == 1 || operation == 4 || operation == 6) info_.flag_rule = FlagRule::logic;
  }

  void set_shift_flags() {
    constexpr std::array<FlagRule, 8> kRules = {
        FlagRule::rotate_left,        FlagRule::rotate_right,    FlagRule::rotate_carry_left,
        FlagRule::rotate_carry_right, FlagRule::shift_left,      FlagRule::shift_right,
        FlagRule::shift_left,         FlagRule::shift_arithmetic};
    info_.flag_rule = kRules[info_.reg_field];
  }

  void set_group3_flags() {
    constexpr std::array<FlagRule, 8> kRules = {FlagRule::logic, FlagRule::logic, FlagRule::none,
                                                FlagRule::none,  FlagRule::mul,   FlagRule::imul,
                                                FlagRule::div,   FlagRule::idiv};
    info_.flag_rule = kRules[info_.reg_field];
  }

  // --- two-byte map ----------------------------------------------------------------------------

  void describe_two_byte() {
    const unsigned opcode = info_.opcode;
    if (opcode >= 0x80 && opcode <= 0x8f) return describe_conditional(Kind::jcc);
    switch (opcode) {
      case 0x00:
      case 0x01:
        return describe_system_group();
      case 0x02:
      case 0x03:
        add_explicit(2, true, false);
        return add_operand_eas();
      case 0x06:
        info_.kind = Kind::clts;
        return;
      case 0x08:
      case 0x09:
        info_.kind = Kind::cache_flush;
        return;
      case 0x0d:
      case 0x18:
      case 0x19:
      case 0x1a:
      case 0x1b:
      case 0x1c:
      case 0x1d:
      case 0x1e:
      case 0x1f:
        return;  // hints and no-operations: no access
      case 0x20:
        info_.kind = Kind::mov_from_cr;
        return;
      case 0x21:
        info_.kind = Kind::mov_from_dr;
        return;
      case 0x22:
        info_.kind = Kind::mov_to_cr;
        return;
      case 0x23:
        info_.kind = Kind::mov_to_dr;
        return;
      case 0x24:
      case 0x26:
        info_.kind = Kind::mov_test_register;
        return;
      case 0x30:
        info_.kind = Kind::wrmsr;
        return;
      case 0x31:
        info_.kind = Kind::rdtsc;
        return;
      case 0x32:
        info_.kind = Kind::rdmsr;
        return;
      case 0x33:
        info_.kind = Kind::rdpmc;
        return;
      case 0x34:
        info_.kind = Kind::sysenter;
        return;
      case 0x35:
        info_.kind = Kind::sysexit;
        return;
      case 0x77:
        info_.kind = Kind::emms;
        return;
      case 0xa0:
      case 0xa8:
        info_.reg_field = segment_of_fs_gs();
        return describe_push_segment();
      case 0xa1:
      case 0xa9:
        info_.reg_field = segment_of_fs_gs();
        return describe_pop_segment();
      case 0xa2:
        info_.kind = Kind::cpuid;
        return;
      case 0xaa:
        info_.kind = Kind::rsm;
        return;
      case 0xae:
        return describe_group15();
      case 0xb2:
        return describe_load_far_pointer(kSs);
      case 0xb4:
        return describe_load_far_pointer(kFs);
      case 0xb5:
        return describe_load_far_pointer(kGs);
      case 0xa3:
      case 0xab:
      case 0xb3:
      case 0xbb:
        return describe_bit_string();
      case 0xf7:
        return describe_masked_move();
      default:
        break;
    }
    describe_plain_two_byte();
  }

  std::uint8_t segment_of_fs_gs() const { return info_.opcode < 0xa8 ? kFs : kGs; }

  void add_operand_eas() {
    if (info_.operand_count > 0) add_ea_operand(0);
  }

  void describe_system_group() {
    const unsigned reg = info_.reg_field;
    if (info_.opcode == 0x00) {
      if (reg == 2) info_.kind = Kind::lldt;
      if (reg == 3) info_.kind = Kind::ltr;
      add_explicit(2, reg >= 2, reg < 2);
      return add_operand_eas();
    }
    if (reg == 7) {
      info_.kind = Kind::invlpg;
      add_explicit(1, false, false);  // names a page, touches nothing
      return;
    }
    if (reg < 4) {
      if (reg == 2) info_.kind = Kind::lgdt;
      if (reg == 3) info_.kind = Kind::lidt;
      add_explicit(6, reg >= 2, reg < 2);
    } else {
      if (reg == 6) info_.kind = Kind::lmsw;
      add_explicit(2, reg == 6, reg == 4);
    }
    add_operand_eas();
  }

  void describe_group15() {
    if (info_.register_form) return;  // fences
    switch (info_.reg_field) {
      case 0:
        info_.kind = Kind::fxsave;
        add_explicit(kFxBytes, false, true);
        break;
      case 1:
        info_.kind = Kind::fxrstor;
        add_explicit(kFxBytes, true, false);
        break;
      case 2:
        info_.kind = Kind::ldmxcsr;
        add_explicit(4, true, false);
        break;
      case 3:
        info_.kind = Kind::stmxcsr;
        add_explicit(4, false, true);
        break;
      default:
        break;  // CLFLUSH: no data
    }
    add_operand_eas();
  }

  void describe_bit_string() {
    info_.flag_rule = FlagRule::bit_test;
    MemoryOperand* operand = add_explicit(word_, true, info_.opcode != 0xa3);
    if (operand == nullptr) return;
    operand->kind = OperandKind::bit_string;
    operand->bit_register = static_cast<std::int8_t>(info_.reg_field);
    add_ea_operand(0);
  }

  void describe_masked_move() {
    info_.kind = info_.mandatory_prefix == 0x66 ? Kind::sse : Kind::mmx;
    MemoryOperand operand;
    operand.kind = OperandKind::string_destination;
    operand.width = address_width();
    operand.segment = override_or(kDs);
    operand.base = kEdi;
    operand.size = info_.mandatory_prefix == 0x66 ? 16 : 8;
    operand.write = true;
    operand.conditional_write = true;
    add(operand);
    add_ea_operand(0);
  }

  void describe_plain_two_byte() {
    MemoryOperand* operand = add_explicit();
    switch (info_.opcode) {
      case 0xa4:
      case 0xa5:
      case 0xac:
      case 0xad:
        info_.flag_rule = FlagRule::double_shift;
        if (operand != nullptr) operand->conditional_write = true;
        break;
      case 0xaf:
        info_.flag_rule = FlagRule::imul_two_operand;
        break;
      case 0xb0:
      case 0xb1:  // writes in either case: the old value back when unequal
        if (operand != nullptr) operand->read = operand->write = true;
        break;
      case 0xba:
        info_.flag_rule = FlagRule::bit_test;
        break;
      case 0xbc:
      case 0xbd:
        info_.flag_rule = FlagRule::bit_scan;
        break;
      case 0xc7:
        if (operand != nullptr) operand->read = operand->write = true;
        break;
      default:
        break;
    }
    if (operand != nullptr) add_ea_operand(0);
    classify_vector();
  }

  void classify_vector() {
    if (info_.opcode_map == 1 && is_sse_arithmetic(info_.opcode)) {
      info_.kind = Kind::sse_fp;
      return;
    }
    for (const ZydisDecodedOperand& operand : zydis_operands_) {
      if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
      const ZydisRegisterClass cls = ZydisRegisterGetClass(operand.reg.value);
      if (cls == ZYDIS_REGCLASS_MMX) {
        info_.kind = Kind::mmx;
        return;
      }
      if (cls == ZYDIS_REGCLASS_XMM) info_.kind = Kind::sse;
    }
  }

  /// Rows of the 0F map that compute on floating point, whatever the mandatory prefix: conversions,
  /// comparisons, square root and approximations, arithmetic, and the SSE3 horizontal forms.
  static bool is_sse_arithmetic(unsigned opcode) {
    return opcode == 0x2a || (opcode >= 0x2c && opcode <= 0x2f) ||
           (opcode >= 0x51 && opcode <= 0x53) || (opcode >= 0x58 && opcode <= 0x5f) ||
           opcode == 0xc2 || opcode == 0xe6 || opcode == 0x7c || opcode == 0x7d || opcode == 0xd0;
  }

  // --- the rest ----------------------------------------------------------------------------------

  void finish() {
    switch (info_.kind) {
      case Kind::jcc:
      case Kind::loop:
      case Kind::jump:
      case Kind::call:
      case Kind::ret:
      case Kind::far_jump:
      case Kind::far_call:
      case Kind::far_return:
      case Kind::iret:
      case Kind::int_n:
      case Kind::int3:
      case Kind::into:
      case Kind::icebp:
      case Kind::sysenter:
      case Kind::sysexit:
      case Kind::rsm:
      case Kind::loadall:
        info_.control_flow = true;
        info_.ends_block = true;
        info_.operand_bytes = word_;
        break;
      case Kind::hlt:
      case Kind::in:
      case Kind::out:
      case Kind::ins:
      case Kind::outs:
      case Kind::mov_to_cr:
      case Kind::mov_to_dr:
      case Kind::mov_test_register:
      case Kind::lmsw:
      case Kind::clts:
      case Kind::invlpg:
      case Kind::cache_flush:
      case Kind::lgdt:
      case Kind::lidt:
      case Kind::lldt:
      case Kind::ltr:
      case Kind::cpuid:
      case Kind::rdtsc:
      case Kind::rdpmc:
      case Kind::rdmsr:
      case Kind::wrmsr:
      case Kind::cli:
      case Kind::sti:
      case Kind::popf:
        info_.ends_block = true;
        break;
      default:
        if (info_.is_repeated()) info_.ends_block = true;
    }
  }

  InstructionInfo& info_;
  CpuModel model_;
  const ZydisDecodedInstruction& decoded_;
  std::span<const ZydisDecodedOperand> zydis_operands_;
  std::uint8_t word_;  ///< 2 or 4: the operand size of forms without a byte variant
};

// ---------------------------------------------------------------------------------------------
// Putting it together.

/// Zydis set up once for a machine mode, with everything newer than SSE2 that changes the meaning
/// of an old encoding switched off: F3 0F BC is BSF, 0F 1E a no-operation, F3 0F 09 WBINVD.
class ZydisDecoderSet {
 public:
  ZydisDecoderSet() {
    prepare(decoders_[0], ZYDIS_MACHINE_MODE_REAL_16, ZYDIS_STACK_WIDTH_16);
    prepare(decoders_[1], ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
    prepare(decoders_[2], ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
  }
  const ZydisDecoder& get(CodeMode mode) const {
    return decoders_[mode.bits32 ? 2 : mode.real_or_v86 ? 0 : 1];
  }

 private:
  static void prepare(ZydisDecoder& decoder, ZydisMachineMode mode, ZydisStackWidth width) {
    bool ok = ZYAN_SUCCESS(ZydisDecoderInit(&decoder, mode, width));
    for (const ZydisDecoderMode off :
         {ZYDIS_DECODER_MODE_AMD_BRANCHES, ZYDIS_DECODER_MODE_KNC, ZYDIS_DECODER_MODE_MPX,
          ZYDIS_DECODER_MODE_CET, ZYDIS_DECODER_MODE_LZCNT, ZYDIS_DECODER_MODE_TZCNT,
          ZYDIS_DECODER_MODE_WBNOINVD, ZYDIS_DECODER_MODE_CLDEMOTE}) {
      ok = ok && ZYAN_SUCCESS(ZydisDecoderEnableMode(&decoder, off, ZYAN_FALSE));
    }
    CITCAT_ASSERT(ok);
  }

  std::array<ZydisDecoder, 3> decoders_;
};

class InstructionDecoder {
 public:
  InstructionDecoder(std::span<const std::uint8_t> bytes, CodeMode mode, CpuModel model)
      : bytes_(bytes.first(std::min<std::size_t>(bytes.size(), kMaxInstructionBytes))),
        mode_(mode),
        model_(model) {
    if (is_16_bit_processor(model)) mode_.bits32 = false;
    if (model == CpuModel::i8088) mode_.real_or_v86 = true;
  }

  InstructionInfo decode() {
    info_.real_or_v86 = mode_.real_or_v86;
    const std::size_t limit = length_limit(model_);
    while (prefixes_.count < bytes_.size() &&
           take_prefix(bytes_[prefixes_.count], model_, prefixes_)) {
      ++prefixes_.count;
    }
    if (prefixes_.count >= limit) return fail(InvalidReason::too_long);
    if (prefixes_.count == bytes_.size()) return incomplete();
    store_prefixes();
    strip_locks();
    if (std::optional<InstructionInfo> special = decode_without_zydis()) return *special;
    return decode_with_zydis();
  }

 private:
  InstructionInfo fail(InvalidReason reason) {
    InstructionInfo info;
    info.state = DecodeState::invalid;
    info.reason = reason;
    std::copy(bytes_.begin(), bytes_.end(), info.bytes.begin());
    info.canonical = info.bytes;
    return info;
  }

  /// The bytes ended inside an instruction. With as many as any instruction may have that is an
  /// instruction which is too long.
  InstructionInfo incomplete() {
    if (bytes_.size() >= length_limit(model_)) return fail(InvalidReason::too_long);
    InstructionInfo info;
    info.state = DecodeState::needs_more_bytes;
    return info;
  }

  void store_prefixes() {
    info_.prefix_bytes = static_cast<std::uint8_t>(prefixes_.count);
    info_.lock = prefixes_.lock;
    info_.operand_prefix = prefixes_.operand;
    info_.address_prefix = prefixes_.address;
    info_.segment_override = prefixes_.segment;
    info_.address_bits = mode_.bits32 != prefixes_.address ? 32 : 16;
  }

  /// stripped_ = the bytes without LOCK, with the opcode's documented encoding.
  void strip_locks() {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (i < prefixes_.count && is_lock_byte(bytes_[i], model_)) continue;
      stripped_[stripped_size_++] = bytes_[i];
    }
    lock_bytes_ = bytes_.size() - stripped_size_;
    opcode_at_ = prefixes_.count - lock_bytes_;
    resolve_alias(std::span(stripped_).subspan(opcode_at_, stripped_size_ - opcode_at_), model_);
  }

  /// Instructions that only one early processor has.
  std::optional<InstructionInfo> decode_without_zydis() {
    const std::uint8_t opcode = stripped_[opcode_at_];
    if (model_ == CpuModel::i8088 && opcode == 0x0f) return pop_cs();
    // The prefixes of the 386 are undefined on the 286; Zydis must not see them.
    if (model_ == CpuModel::i286 && opcode >= 0x64 && opcode <= 0x67) {
      return fail(InvalidReason::undefined_opcode);
    }
    const bool more = opcode_at_ + 1 < stripped_size_;
    const std::uint8_t next = more ? stripped_[opcode_at_ + 1] : 0;
    // BOUND, LES and LDS with a register, and POP /1../7: prefixes of later processors to Zydis.
    const bool vector_prefix = opcode == 0x62 || opcode == 0xc4 || opcode == 0xc5;
    if (vector_prefix && next >= 0xc0) return not_in_zydis();
    if (opcode == 0x8f && (next & 0x38) != 0) return not_in_zydis();
    const bool second = opcode == 0x0f && more;
    if ((model_ == CpuModel::i286 && second && next == 0x05) ||
        (model_ == CpuModel::i386 && second && next == 0x07)) {
      return load_all();
    }
    return std::nullopt;
  }

  InstructionInfo pop_cs() {
    begin(1);
    info_.opcode = 0x0f;
    info_.kind = Kind::pop_segment;
    info_.reg_field = kCs;
    info_.operand_bytes = 2;
    info_.control_flow = info_.ends_block = info_.shadows_interrupts = true;
    MemoryOperand operand;
    operand.kind = OperandKind::stack_pop;
    operand.width = AddressWidth::stack;
    operand.segment = kSs;
    operand.base = kEsp;
    operand.size = 2;
    operand.read = true;
    info_.operands[0] = operand;
    info_.operand_count = 1;
    info_.stack_delta = 2;
    info_.ea_count = 1;
    info_.ea[0] = EaSlot{EaSource::stack_pop, 0};
    return info_;
  }

  InstructionInfo load_all() {
    begin(2);
    info_.opcode = stripped_[opcode_at_ + 1];
    info_.opcode_map = 1;
    info_.kind = Kind::loadall;
    info_.control_flow = info_.ends_block = true;
    return info_;
  }

  /// Marks the instruction as found, `encoded` bytes from the opcode on.
  void begin(std::size_t encoded) {
    info_.state = DecodeState::ok;
    info_.length = static_cast<std::uint8_t>(prefixes_.count + encoded);
    std::copy_n(bytes_.begin(), info_.length, info_.bytes.begin());
    info_.canonical = info_.bytes;
  }

  InstructionInfo decode_with_zydis() {
    static const ZydisDecoderSet decoders;
    ZydisDecodedInstruction decoded;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    const ZyanStatus status = ZydisDecoderDecodeFull(&decoders.get(mode_), stripped_.data(),
                                                     stripped_size_, &decoded, operands.data());
    if (status == ZYDIS_STATUS_NO_MORE_DATA) return incomplete();
    if (status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG) return fail(InvalidReason::too_long);
    if (!ZYAN_SUCCESS(status)) return not_in_zydis();
    const bool legacy = decoded.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY ||
                        decoded.encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW;
    if (!legacy) return not_in_zydis();
    const std::size_t length = decoded.length + lock_bytes_;
    if (length > length_limit(model_)) return fail(InvalidReason::too_long);
    begin(length - prefixes_.count);
    store_encoding(decoded);
    if (const InvalidReason reason = check_model(decoded); reason != InvalidReason::none) {
      return fail(reason);
    }
    Describer(info_, model_, decoded, std::span(operands).first(decoded.operand_count)).run();
    make_canonical(harmless_segment(decoded, operands));
    return info_;
  }

  /// What Zydis refuses the later processors refuse too. The 8088 executes something: forms with a
  /// register where memory is needed work on stale internal state, so there is nothing to describe.
  InstructionInfo not_in_zydis() {
    if (model_ != CpuModel::i8088) return fail(InvalidReason::undefined_opcode);
    if (opcode_at_ + 2 > stripped_size_) return incomplete();
    const std::uint8_t modrm = stripped_[opcode_at_ + 1];
    std::size_t displacement = 0;
    if ((modrm >> 6) == 1) displacement = 1;
    if ((modrm >> 6) == 2 || ((modrm >> 6) == 0 && (modrm & 7) == 6)) displacement = 2;
    if (opcode_at_ + 2 + displacement > stripped_size_) return incomplete();
    begin(2 + displacement);
    info_.opcode = stripped_[opcode_at_];
    info_.has_modrm = true;
    info_.modrm = modrm;
    info_.register_form = (modrm >> 6) == 3;
    info_.reg_field = modrm >> 3 & 7;
    info_.rm_field = modrm & 7;
    info_.operand_bytes = 2;
    make_canonical(prefixes_.segment < 0 ? kDs : static_cast<SegmentRegister>(prefixes_.segment));
    if (info_.opcode == 0x8e) {
      info_.kind = Kind::mov_to_segment;
      info_.control_flow = info_.reg_field == kCs;
      info_.shadows_interrupts = info_.ends_block = true;
    }
    if (info_.opcode == 0xff) {  // far jump or call without a pointer
      info_.kind = info_.reg_field == 3 ? Kind::far_call : Kind::far_jump;
      info_.control_flow = info_.ends_block = info_.indirect = true;
    }
    return info_;
  }

  void store_encoding(const ZydisDecodedInstruction& decoded) {
    info_.opcode = decoded.opcode;
    switch (decoded.opcode_map) {
      case ZYDIS_OPCODE_MAP_0F:
        info_.opcode_map = 1;
        break;
      case ZYDIS_OPCODE_MAP_0F38:
        info_.opcode_map = 2;
        break;
      case ZYDIS_OPCODE_MAP_0F3A:
        info_.opcode_map = 3;
        break;
      case ZYDIS_OPCODE_MAP_0F0F:
        info_.opcode_map = 4;
        break;
      default:
        info_.opcode_map = 0;
    }
    info_.has_modrm = (decoded.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0;
    if (info_.has_modrm) {
      info_.modrm = static_cast<std::uint8_t>(decoded.raw.modrm.mod << 6 |
                                              decoded.raw.modrm.reg << 3 | decoded.raw.modrm.rm);
      info_.register_form = decoded.raw.modrm.mod == 3;
      info_.reg_field = decoded.raw.modrm.reg;
      info_.rm_field = decoded.raw.modrm.rm;
    } else {
      info_.rm_field = decoded.opcode & 7;
    }
    if (info_.opcode_map != 0) {
      info_.mandatory_prefix = prefixes_.repeat != 0 ? prefixes_.repeat
                               : prefixes_.operand   ? std::uint8_t{0x66}
                                                     : std::uint8_t{0};
    }
    info_.operand_bytes = static_cast<std::uint8_t>(decoded.operand_width / 8);
    store_immediates(decoded);
  }

  void store_immediates(const ZydisDecodedInstruction& decoded) {
    const auto& immediate = decoded.raw.imm[0];
    if (info_.opcode_map == 0 && (info_.opcode == 0x9a || info_.opcode == 0xea)) {
      // Zydis reports offset and selector as two immediates.
      info_.far_offset = static_cast<std::uint32_t>(immediate.value.u);
      info_.far_selector = static_cast<std::uint16_t>(decoded.raw.imm[1].value.u);
      return;
    }
    if (immediate.size == 0) return;
    if (immediate.is_relative) {
      info_.target_displacement = static_cast<std::int32_t>(immediate.value.s);
    } else {
      const std::uint64_t mask = (std::uint64_t{1} << immediate.size) - 1;
      info_.immediate = static_cast<std::uint32_t>(immediate.value.u & mask);
    }
  }

  InvalidReason check_model(const ZydisDecodedInstruction& decoded) {
    switch (decoded.mnemonic) {
      case ZYDIS_MNEMONIC_UD0:
      case ZYDIS_MNEMONIC_UD1:
      case ZYDIS_MNEMONIC_UD2:
        return InvalidReason::undefined_opcode;
      default:
        break;
    }
    const bool present =
        info_.opcode_map == 0 ? has_one_byte_opcode(info_, model_) : has_0f_opcode(info_, model_);
    if (!present) return InvalidReason::undefined_opcode;
    if (!info_.lock) return InvalidReason::none;
    const bool lockable = is_lockable(info_);
    if (!lockable && !is_16_bit_processor(model_)) return InvalidReason::lock_prefix;
    info_.lock_ignored = !lockable;
    return InvalidReason::none;
  }

  /// The segment that the instruction uses, or may be told to use without a difference.
  SegmentRegister harmless_segment(const ZydisDecodedInstruction& decoded,
                                   std::span<const ZydisDecodedOperand> operands) const {
    if (prefixes_.segment >= 0) return static_cast<SegmentRegister>(prefixes_.segment);
    for (const ZydisDecodedOperand& operand : operands.first(decoded.operand_count)) {
      if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
      if (operand.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT) continue;
      return segment_number(operand.mem.segment);
    }
    return kDs;
  }

  /// Puts the documented opcode and harmless prefixes into `canonical`.
  void make_canonical(SegmentRegister segment) {
    for (std::size_t i = 0; i < prefixes_.count; ++i) {
      if (is_lock_byte(bytes_[i], model_)) {
        info_.canonical[i] = segment_prefix_byte(segment);
      }
    }
    for (std::size_t i = prefixes_.count; i < info_.length; ++i) {
      info_.canonical[i] = stripped_[opcode_at_ + i - prefixes_.count];
      info_.aliased = info_.aliased || info_.canonical[i] != info_.bytes[i];
    }
  }

  std::span<const std::uint8_t> bytes_;
  CodeMode mode_;
  CpuModel model_;
  Prefixes prefixes_;
  InstructionInfo info_;
  std::array<std::uint8_t, kMaxInstructionBytes> stripped_{};
  std::size_t stripped_size_ = 0;
  std::size_t lock_bytes_ = 0;
  std::size_t opcode_at_ = 0;
};

std::uint32_t kt_target(const InstructionInfo& info, std::uint32_t eip,
                        const std::uint32_t* segment_bases) {
  if (info.kind == Kind::far_jump || info.kind == Kind::far_call) {
    const std::uint32_t base = info.real_or_v86 ? std::uint32_t{info.far_selector} << 4 : 0;
    return base + info.far_offset;
  }
  std::uint32_t target = eip + info.length + static_cast<std::uint32_t>(info.target_displacement);
  if (info.operand_bytes == 2) target &= 0xffff;
  return segment_bases[kCs] + target;
}

}  // namespace

InstructionInfo decode_instruction(std::span<const std::uint8_t> bytes, CodeMode mode,
                                   CpuModel model) {
  return InstructionDecoder(bytes, mode, model).decode();
}

std::uint32_t special_operand_offset(const MemoryOperand& operand, const std::uint64_t* regs,
                                     bool stack32) {
  MemoryOperand plain = operand;
  plain.kind = OperandKind::address;
  std::uint32_t offset = operand_offset(plain, regs, stack32);
  if (operand.kind == OperandKind::table) {
    offset += static_cast<std::uint32_t>(regs[kEax]) & 0xff;
  } else if (operand.kind == OperandKind::address_after_pop) {
    const auto esp = static_cast<std::uint32_t>(regs[kEsp]);
    const std::uint32_t popped =
        stack32 ? esp + operand.size : (esp & 0xffff0000) | ((esp + operand.size) & 0xffff);
    offset += popped - esp;
  } else if (operand.kind == OperandKind::bit_string) {
    // Bits are numbered from the base address in both directions, in units of the operand.
    const auto bits = static_cast<std::uint32_t>(regs[operand.bit_register]);
    const std::int32_t unit =
        operand.size == 4 ? static_cast<std::int32_t>(bits) >> 5
                          : static_cast<std::int16_t>(static_cast<std::uint16_t>(bits)) >> 4;
    offset += static_cast<std::uint32_t>(unit * static_cast<std::int32_t>(operand.size));
  }
  return wrap_offset(offset, operand.width, stack32);
}

std::uint32_t kt_address(const InstructionInfo& info, unsigned slot, std::uint32_t eip,
                         const std::uint64_t* regs, const std::uint32_t* segment_bases,
                         bool stack32) {
  const EaSlot& ea = info.ea[slot];
  const auto stack = [&](Gpr pointer, std::uint32_t below) {
    const std::uint32_t offset = static_cast<std::uint32_t>(regs[pointer]) - below;
    return segment_bases[kSs] + wrap_offset(offset, AddressWidth::stack, stack32);
  };
  switch (ea.source) {
    case EaSource::operand:
      return operand_linear(info.operands[ea.argument], regs, segment_bases, stack32);
    case EaSource::target:
      return kt_target(info, eip, segment_bases);
    case EaSource::stack_push:
      return stack(kEsp, ea.argument);
    case EaSource::stack_pop:
      return stack(kEsp, 0);
    case EaSource::frame:
      return stack(kEbp, 0);
    case EaSource::reg: {
      const auto offset = static_cast<std::uint32_t>(regs[ea.argument]);
      return segment_bases[kCs] + (info.operand_bytes == 2 ? offset & 0xffff : offset);
    }
  }
  return 0;
}

}  // namespace citcat
