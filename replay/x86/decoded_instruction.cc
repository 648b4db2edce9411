// Decoding in four steps: prefixes; undocumented encodings turned into documented ones; Zydis for
// lengths, explicit operands and the bulk of the invalid forms, opcode_support for the models; and
// operand_decoder for the meaning.
//
// Undocumented 8088 encodings follow its decoder, which ignores bits of the opcode where the manual
// has gaps.

#include "replay/x86/decoded_instruction.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <optional>

#include "events/cpu_traits.h"
#include "formats/io/error.h"
#include "replay/x86/opcode_support.h"
#include "replay/x86/operand_decoder.h"
#include "replay/x86/register_effect_decoder.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

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
  if (cpu_traits(model).has_opcode_aliases) resolve_8088_alias(code);
  if ((code[0] == 0xf6 || code[0] == 0xf7) && code.size() > 1 && ((code[1] >> 3) & 7) == 1) {
    code[1] = static_cast<std::uint8_t>(code[1] & 0xc7);  // TEST, on every processor
  }
  if (code[0] == 0x82) code[0] = 0x80;
}

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
        model_(model),
        traits_(cpu_traits(model)) {
    if (traits_.sixteen_bit) mode_.bits32 = false;
    if (!traits_.has_limits) mode_.real_or_v86 = true;
  }

  DecodedInstruction decode() {
    info_.real_or_v86 = mode_.real_or_v86;
    const std::size_t limit = traits_.longest;
    while (prefixes_.count < bytes_.size() &&
           take_prefix(bytes_[prefixes_.count], model_, prefixes_)) {
      ++prefixes_.count;
    }
    if (prefixes_.count >= limit) return fail(InvalidReason::too_long);
    if (prefixes_.count == bytes_.size()) return incomplete();
    store_prefixes();
    strip_locks();
    if (std::optional<DecodedInstruction> special = decode_without_zydis()) return *special;
    return decode_with_zydis();
  }

 private:
  DecodedInstruction fail(InvalidReason reason) {
    DecodedInstruction info;
    info.state = DecodeState::invalid;
    info.reason = reason;
    std::copy(bytes_.begin(), bytes_.end(), info.bytes.begin());
    info.canonical = info.bytes;
    return info;
  }

  /// The bytes ended inside an instruction. With as many as any instruction may have that is an
  /// instruction which is too long.
  DecodedInstruction incomplete() {
    if (bytes_.size() >= traits_.longest) return fail(InvalidReason::too_long);
    DecodedInstruction info;
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
  std::optional<DecodedInstruction> decode_without_zydis() {
    const std::uint8_t opcode = stripped_[opcode_at_];
    if (traits_.has_pop_cs && opcode == 0x0f) return pop_cs();
    // The prefixes of the 386 are undefined on the 286; Zydis must not see them.
    if (traits_.instructions == InstructionSet::i286 && opcode >= 0x64 && opcode <= 0x67) {
      return fail(InvalidReason::undefined_opcode);
    }
    const bool more = opcode_at_ + 1 < stripped_size_;
    const std::uint8_t next = more ? stripped_[opcode_at_ + 1] : 0;
    // BOUND, LES and LDS with a register, and POP /1../7: prefixes of later processors to Zydis.
    const bool vector_prefix = opcode == 0x62 || opcode == 0xc4 || opcode == 0xc5;
    if (vector_prefix && next >= 0xc0) return not_in_zydis();
    if (opcode == 0x8f && (next & 0x38) != 0) return not_in_zydis();
    const bool second = opcode == 0x0f && more;
    if ((traits_.has_80286_loadall && second && next == 0x05) ||
        (traits_.has_80386_loadall && second && next == 0x07)) {
      return load_all();
    }
    return std::nullopt;
  }

  DecodedInstruction pop_cs() {
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

  DecodedInstruction load_all() {
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

  DecodedInstruction decode_with_zydis() {
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
    if (length > traits_.longest) return fail(InvalidReason::too_long);
    begin(length - prefixes_.count);
    store_encoding(decoded);
    if (const InvalidReason reason = check_model(decoded); reason != InvalidReason::none) {
      return fail(reason);
    }
    decode_operands(info_, model_, decoded, std::span(operands).first(decoded.operand_count));
    info_.registers =
        decode_register_effect(info_, decoded, std::span(operands).first(decoded.operand_count));
    make_canonical(harmless_segment(decoded, operands));
    return info_;
  }

  /// What Zydis refuses the later processors refuse too. The 8088 executes something: forms with a
  /// register where memory is needed work on stale internal state, so there is nothing to describe.
  DecodedInstruction not_in_zydis() {
    if (traits_.has_invalid_opcodes) return fail(InvalidReason::undefined_opcode);
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
    if (!is_on_processor(info_, model_)) return InvalidReason::undefined_opcode;
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
  const CpuTraits& traits_;
  Prefixes prefixes_;
  DecodedInstruction info_;
  std::array<std::uint8_t, kMaxInstructionBytes> stripped_{};
  std::size_t stripped_size_ = 0;
  std::size_t lock_bytes_ = 0;
  std::size_t opcode_at_ = 0;
};

std::uint32_t kt_target(const DecodedInstruction& info, std::uint32_t eip,
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

DecodedInstruction decode_instruction(std::span<const std::uint8_t> bytes, CodeMode mode,
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

std::uint32_t kt_address(const DecodedInstruction& info, unsigned slot, std::uint32_t eip,
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
