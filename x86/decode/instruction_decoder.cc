// Decoding in four steps: prefixes; undocumented encodings turned into documented ones; the row of
// the opcode and the operands that it names; what the row says about them.
//
// Undocumented 8088 encodings follow its decoder, which ignores bits of the opcode where the manual
// has gaps.

#include <algorithm>
#include <optional>

#include "events/machine/cpu_traits.h"
#include "x86/decode/access_list.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/decode/encoded_operands.h"
#include "x86/decode/opcode_table.h"
#include "x86/decode/register_effect_decoder.h"
#include "x86/decode/vex_prefix.h"
#include "x86/decode/wide_size.h"

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
  std::uint8_t rex = 0;  ///< of 64-bit mode, where the last prefix is one
};

/// The same in 64-bit mode: only FS and GS are taken (Intel SDM vol. 1, 3.3.7.1), and REX counts
/// where it is last (vol. 2, 2.2.1).
bool take_prefix_64(std::uint8_t byte, Prefixes& prefixes) {
  constexpr std::uint8_t kRex = 0x40;
  if ((byte & 0xf0) == kRex) {
    prefixes.rex = byte;
    return true;
  }
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
      break;
    case 0xf0:
      prefixes.lock = true;
      break;
    case 0xf2:
    case 0xf3:
      prefixes.repeat = byte;
      break;
    case 0x64:
    case 0x65:
      prefixes.segment = byte == 0x64 ? kFs : kGs;
      break;
    case 0x66:
    case 0x67:
      (byte == 0x66 ? prefixes.operand : prefixes.address) = true;
      break;
    default:
      return false;
  }
  prefixes.rex = 0;
  return true;
}

/// True when `byte` is a prefix of the processor, which is then noted in `prefixes`.
bool take_prefix(std::uint8_t byte, const CpuTraits& traits, Prefixes& prefixes) {
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
      if (!traits.has_f1_prefix) return false;
      prefixes.lock = true;
      return true;
    case 0x64:
    case 0x65:
      if (traits.has_nec_opcodes) prefixes.repeat = byte;
      if (traits.sixteen_bit) return traits.has_nec_opcodes;
      prefixes.segment = byte == 0x64 ? kFs : kGs;
      return true;
    case 0x66:
    case 0x67:
      if (traits.sixteen_bit) return false;
      (byte == 0x66 ? prefixes.operand : prefixes.address) = true;
      return true;
    default:
      return false;
  }
}

bool is_lock_byte(std::uint8_t byte, const CpuTraits& traits) {
  return byte == 0xf0 || (byte == 0xf1 && traits.has_f1_prefix);
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

/// Where three bits name one of four segment registers, and ModRM.reg is not looked at.
void resolve_ignored_fields(std::span<std::uint8_t> code) {
  if (code.size() < 2) return;
  if (code[0] == 0x8c || code[0] == 0x8e) code[1] = static_cast<std::uint8_t>(code[1] & 0xdf);
  if (code[0] == 0xc6 || code[0] == 0xc7) code[1] = static_cast<std::uint8_t>(code[1] & 0xc7);
}

void resolve_alias(std::span<std::uint8_t> code, const CpuTraits& traits, bool bits64) {
  if (traits.has_opcode_aliases) resolve_8088_alias(code);
  if (traits.ignores_reg_field) resolve_ignored_fields(code);
  if ((code[0] == 0xf6 || code[0] == 0xf7) && code.size() > 1 && ((code[1] >> 3) & 7) == 1) {
    code[1] = static_cast<std::uint8_t>(code[1] & 0xc7);  // TEST, on every processor
  }
  if (code[0] == 0x82 && !bits64) code[0] = 0x80;
}

// ---------------------------------------------------------------------------------------------
// Putting it together.

bool has_operand(const OpcodeRow& row, OperandForm form) {
  return std::find(row.operands.begin(), row.operands.end(), form) != row.operands.end();
}

class InstructionDecoder {
 public:
  InstructionDecoder(std::span<const std::uint8_t> bytes, CodeMode mode, const CpuTraits& traits)
      : bytes_(bytes.first(std::min<std::size_t>(bytes.size(), kMaxInstructionBytes))),
        mode_(mode),
        traits_(traits) {
    if (traits_.sixteen_bit) mode_.bits32 = false;
    if (!traits_.has_limits) mode_.real_or_v86 = true;
    if (!traits_.has_long_mode) mode_.bits64 = false;
  }

  DecodedInstruction decode() {
    info_.real_or_v86 = mode_.real_or_v86;
    info_.bits64 = mode_.bits64;
    while (prefixes_.count < bytes_.size() && take_one_prefix(bytes_[prefixes_.count])) {
      ++prefixes_.count;
    }
    if (prefixes_.count >= traits_.longest) return fail(InvalidReason::too_long);
    if (prefixes_.count == bytes_.size()) return incomplete();
    store_prefixes();
    strip_locks();
    if (!find_map()) return incomplete();
    if (vex_refused_) return without_meaning();
    const std::uint8_t* const modrm = code_.size() > 1 ? &code_[1] : nullptr;
    OpcodeMatch match = find_opcode(map_, searched_opcode(), mandatory_prefix(),
                                    modrm == nullptr ? std::nullopt : std::optional(*modrm),
                                    mode_.bits64 || is_syscall());
    if (escapes(match)) {
      match = find_opcode(OpcodeMap::escape, code_[0], MandatoryPrefix::any, std::nullopt, false);
    }
    const bool has_modrm = match.needs_modrm || (match.row != nullptr && match.row->modrm.present);
    if (has_modrm && modrm == nullptr) return incomplete();
    if (match.row == nullptr) return without_meaning();
    return decode_row(has_newer_meaning(*match.row) ? newer_meaning(*match.row) : *match.row);
  }

 private:
  /// AMD's processors have it outside 64-bit mode too, where LOADALL has its row.
  bool is_syscall() const {
    return traits_.has_long_mode && map_ == OpcodeMap::m0F && code_[0] == 0x05;
  }
  /// It is ESC, and nobody takes it.
  bool escapes(const OpcodeMatch& match) const {
    if (!traits_.reads_for_coprocessor || map_ != OpcodeMap::one) return false;
    if (traits_.has_nec_opcodes && (code_[0] & 0xfe) == 0x66) return true;  // FPO2
    if ((code_[0] & 0xf8) != 0xd8) return false;
    return mode_.escapes || (match.row == nullptr && !match.needs_modrm);
  }
  /// BSF and BSR after F3.
  bool has_newer_meaning(const OpcodeRow& row) const {
    return prefixes_.repeat == 0xf3 && ((row.operation == Operation::bsf && mode_.has_tzcnt) ||
                                        (row.operation == Operation::bsr && mode_.has_lzcnt));
  }
  bool take_one_prefix(std::uint8_t byte) {
    return mode_.bits64 ? take_prefix_64(byte, prefixes_) : take_prefix(byte, traits_, prefixes_);
  }

  /// 90 with REX.B exchanges R8 with the accumulator.
  std::uint8_t searched_opcode() const {
    const bool exchanges =
        map_ == OpcodeMap::one && code_[0] == 0x90 && (prefixes_.rex & kRexB) != 0;
    return exchanges ? std::uint8_t{0x91} : code_[0];
  }

  DecodedInstruction fail(InvalidReason reason) {
    DecodedInstruction info;
    info.state = DecodeState::invalid;
    info.reason = reason;
    info.prefix_bytes = static_cast<std::uint8_t>(prefixes_.count);
    info.rex = prefixes_.rex;
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
    info.prefix_bytes = static_cast<std::uint8_t>(prefixes_.count);
    return info;
  }

  void store_prefixes() {
    info_.prefix_bytes = static_cast<std::uint8_t>(prefixes_.count);
    info_.lock = prefixes_.lock;
    info_.operand_prefix = prefixes_.operand;
    info_.address_prefix = prefixes_.address;
    info_.segment_override = prefixes_.segment;
    info_.rex = prefixes_.rex;
    info_.address_bits = mode_.bits32 != prefixes_.address ? 32 : 16;
    if (mode_.bits64) info_.address_bits = prefixes_.address ? 32 : 64;
  }

  /// stripped_ = the bytes without LOCK, with the opcode's documented encoding.
  void strip_locks() {
    std::size_t locks = 0, size = 0;
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (i < prefixes_.count && prefixes_.lock && is_lock_byte(bytes_[i], traits_)) {
        ++locks;
      } else {
        stripped_[size++] = bytes_[i];
      }
    }
    whole_code_ = std::span(stripped_).first(size).subspan(prefixes_.count - locks);
    resolve_alias(whole_code_, traits_, mode_.bits64);
  }

  /// code_ = from the last byte of the opcode on. False where the bytes end before.
  bool find_map() {
    code_ = whole_code_;
    if (is_vex()) return take_vex();
    const bool two_bytes = code_[0] == 0x0f && !traits_.has_pop_cs;
    if (!two_bytes) return true;
    map_ = traits_.has_nec_opcodes ? OpcodeMap::n0F : OpcodeMap::m0F;
    code_ = code_.subspan(1);
    if (code_.empty()) return false;
    if (map_ == OpcodeMap::n0F) return true;
    if (code_[0] != 0x38 && code_[0] != 0x3a) return true;
    map_ = code_[0] == 0x38 ? OpcodeMap::m38 : OpcodeMap::m3A;
    code_ = code_.subspan(1);
    return !code_.empty();
  }

  /// C4 and C5 are VEX prefixes in 64-bit mode, and where LES and LDS would have a register for an
  /// operand (Intel SDM vol. 2, 2.3.5).
  bool is_vex() const {
    if (!traits_.has_long_mode || (whole_code_[0] & 0xfe) != 0xc4) return false;
    return mode_.bits64 || (!mode_.real_or_v86 && whole_code_.size() > 1 && whole_code_[1] >= 0xc0);
  }

  /// Nothing that selects, locks or extends may be before it (2.3.2 to 2.3.4). False where the
  /// bytes end before the opcode.
  bool take_vex() {
    const std::optional<VexPrefix> vex = read_vex_prefix(whole_code_, mode_.bits64);
    if (!vex) return false;
    vex_ = *vex;
    map_ = vex->map;
    vex_refused_ = vex->of_vectors_only || prefixes_.operand || prefixes_.repeat != 0 ||
                   prefixes_.lock || prefixes_.rex != 0;
    if (vex_refused_) return true;
    info_.rex = prefixes_.rex = vex->rex;
    info_.vex_register = vex->register_;
    code_ = code_.subspan(kVexBytes);
    return true;
  }

  MandatoryPrefix mandatory_prefix() const {
    if (map_ == OpcodeMap::v38 || map_ == OpcodeMap::v3A) return vex_.prefix;
    if (prefixes_.repeat == 0xf3) return MandatoryPrefix::pF3;
    if (prefixes_.repeat == 0xf2) return MandatoryPrefix::pF2;
    return prefixes_.operand ? MandatoryPrefix::p66 : MandatoryPrefix::np;
  }

  DecodedInstruction decode_row(const OpcodeRow& row) {
    info_.row = &row;
    store_encoding(row);
    EncodedOperands operands;
    operands.word = word_of(row);
    const std::optional<std::size_t> behind = read_operands(info_, code_.subspan(1), operands);
    if (!behind) return incomplete();
    const std::size_t opcode_bytes = whole_code_.size() - code_.size() + 1;
    const std::size_t length = prefixes_.count + opcode_bytes + *behind;
    if (length > traits_.longest) return fail(InvalidReason::too_long);
    if (!row.processors.has(traits_.instructions)) return without_meaning();
    if (row.has(kProtectedMode) && mode_.real_or_v86) return without_meaning();
    if (row.has(kLongModeAlone) && !row.has(kNewerMeaning) && !traits_.has_long_mode)
      return without_meaning();
    if (names_no_register(row)) return without_meaning();
    if (vex_.names_register && !has_operand(row, OperandForm::By)) return without_meaning();
    if (info_.lock && !take_lock(row)) return fail(InvalidReason::lock_prefix);
    begin(length);
    // Displacements count from the next instruction, kRip is where this one begins.
    if (operands.address.base == kRip) operands.address.displacement += info_.length;
    store_operands(row, operands);
    AccessList(info_, traits_, operands).build();
    info_.registers = decode_register_effect(info_, operands);
    make_canonical(operands.in_memory ? operands.address.segment : harmless_segment());
    return info_;
  }

  std::uint8_t word_of(const OpcodeRow& row) const {
    if (!mode_.bits64) return mode_.bits32 != prefixes_.operand ? 4 : 2;
    const WideSize size = wide_size(row);
    if (size == WideSize::near_branch) return 8;
    if ((prefixes_.rex & kRexW) != 0) return size == WideSize::port ? 4 : 8;
    if (prefixes_.operand) return 2;
    return size == WideSize::stack ? 8 : 4;
  }

  /// CR8 is the only control register beyond CR7, and there are no debug registers (Intel SDM vol.
  /// 2, MOV).
  bool names_no_register(const OpcodeRow& row) const {
    if ((prefixes_.rex & kRexR) == 0) return false;
    const bool control = has_operand(row, OperandForm::Cd);
    return has_operand(row, OperandForm::Dd) || (control && (info_.modrm >> 3 & 7) != 0);
  }

  void store_encoding(const OpcodeRow& row) {
    info_.opcode = code_[0];
    info_.opcode_map = static_cast<std::uint8_t>(map_);
    info_.has_modrm = row.modrm.present;
    info_.rm_field = static_cast<std::uint8_t>((code_[0] & 7u) | info_.rex_bit(kRexB));
    if (info_.has_modrm) {
      info_.modrm = code_[1];
      info_.register_form = info_.modrm >= 0xc0;
      // Segment registers have no upper half.
      const unsigned upper = has_operand(row, OperandForm::Sw) ? 0 : info_.rex_bit(kRexR);
      info_.reg_field = static_cast<std::uint8_t>((info_.modrm >> 3 & 7u) | upper);
      info_.rm_field = static_cast<std::uint8_t>((info_.modrm & 7u) | info_.rex_bit(kRexB));
    }
    if (map_ == OpcodeMap::one || map_ >= OpcodeMap::v38) return;
    info_.mandatory_prefix = prefixes_.repeat != 0 ? prefixes_.repeat
                             : prefixes_.operand   ? std::uint8_t{0x66}
                                                   : std::uint8_t{0};
  }

  /// Whether the processor takes LOCK here, or does not mind.
  bool take_lock(const OpcodeRow& row) {
    const bool lockable = row.has(kLockable) && !info_.register_form;
    info_.lock_ignored = !lockable;
    return lockable || traits_.sixteen_bit;
  }

  void store_operands(const OpcodeRow& row, const EncodedOperands& operands) {
    info_.kind = row.kind;
    info_.operand_bytes = operand_bytes(row, operands.word);
    if (row.kind == Kind::smsw && info_.operand_bytes == 2) info_.kind = Kind::plain;
    // /6 shifts left from the 286 on; the 8088 sets all bits.
    const bool sets_bits =
        traits_.shift_6_sets_bits && info_.reg_field == 6 && row.flags.rule == FlagRule::shift_left;
    info_.flag_rule = sets_bits ? FlagRule::set_bits : row.flags.rule;
    switch (row.operands[0]) {
      case OperandForm::Ap:
        info_.far_offset = operands.immediates[0];
        info_.far_selector = static_cast<std::uint16_t>(operands.immediates[1]);
        break;
      case OperandForm::Jb:
      case OperandForm::Jz:
        info_.target_displacement = static_cast<std::int32_t>(operands.immediates[0]);
        break;
      default:
        info_.immediate = operands.immediates[0];
    }
  }

  /// The size of the first operand that is no port; for a vector instruction the mode's.
  std::uint8_t operand_bytes(const OpcodeRow& row, std::uint8_t word) const {
    const bool port = row.operands[0] == OperandForm::Ib || row.operands[0] == OperandForm::DX;
    const OperandForm form = row.operands[port ? 1 : 0];
    if (row.kind == Kind::newer_integer || row.kind == Kind::random) {
      const bool any_size = has_operand(row, OperandForm::Gv) || has_operand(row, OperandForm::Ev);
      return any_size || word == 8 ? word : std::uint8_t{4};
    }
    if (row.prefix != MandatoryPrefix::any && form != OperandForm::Gv)
      return mode_.bits32 || mode_.bits64 ? 4 : 2;
    if (form == OperandForm::Xb || form == OperandForm::Yb) return 1;
    if (row.operands[1] == OperandForm::Rd || form == OperandForm::Rd) return mode_.bits64 ? 8 : 4;
    const bool bytes = memory_size(form, word) == 1 || register_size(form, word) == 1;
    return bytes ? std::uint8_t{1} : word;
  }

  /// An encoding without a row, or one that the processor lacks. The 8088 executes something:
  /// forms with a register where memory is needed work on stale internal state, so there is nothing
  /// to describe.
  DecodedInstruction without_meaning() {
    if (traits_.has_invalid_opcodes) return fail(InvalidReason::undefined_opcode);
    if (whole_code_.size() < 2) return incomplete();
    const std::uint8_t modrm = whole_code_[1];
    std::size_t displacement = 0;
    if ((modrm >> 6) == 1) displacement = 1;
    if ((modrm >> 6) == 2 || ((modrm >> 6) == 0 && (modrm & 7) == 6)) displacement = 2;
    if (whole_code_.size() < 2 + displacement) return incomplete();
    begin(prefixes_.count + 2 + displacement);
    info_.row = nullptr;
    info_.opcode = whole_code_[0];
    info_.has_modrm = true;
    info_.modrm = modrm;
    info_.register_form = (modrm >> 6) == 3;
    info_.reg_field = modrm >> 3 & 7;
    info_.rm_field = modrm & 7;
    info_.operand_bytes = 2;
    make_canonical(harmless_segment());
    if (info_.opcode == 0xff) {  // far jump or call without a pointer
      info_.kind = info_.reg_field == 3 ? Kind::far_call : Kind::far_jump;
      info_.control_flow = info_.ends_block = info_.indirect = true;
    }
    return info_;
  }

  /// Marks the instruction as found.
  void begin(std::size_t length) {
    info_.state = DecodeState::ok;
    info_.length = static_cast<std::uint8_t>(length);
    std::copy_n(bytes_.begin(), info_.length, info_.bytes.begin());
    info_.canonical = info_.bytes;
  }

  /// A segment that the instruction may be told to use without a difference.
  SegmentRegister harmless_segment() const {
    return prefixes_.segment >= 0 ? static_cast<SegmentRegister>(prefixes_.segment) : kDs;
  }
  /// The same for the engine, of an operand in `segment`. In 64-bit mode, too, it adds the base of
  /// what a prefix names, which is that of compatibility mode; that of CS is 0.
  SegmentRegister engine_segment(SegmentRegister segment) const {
    const bool ignored = mode_.bits64 && segment != kFs && segment != kGs;
    return ignored ? kCs : segment;
  }

  /// Puts the documented opcode and harmless prefixes into `canonical`.
  void make_canonical(SegmentRegister segment) {
    for (std::size_t i = 0; prefixes_.lock && i < prefixes_.count; ++i) {
      if (is_lock_byte(bytes_[i], traits_)) {
        info_.canonical[i] = segment_prefix_byte(engine_segment(segment));
      }
    }
    // NEC's REPC and REPNC, which the engine takes for FS and GS: but for CMPS and SCAS, which are
    // not replayed, REP.
    const bool repeats = info_.is_repeated();
    for (std::size_t i = 0; traits_.has_nec_opcodes && i < prefixes_.count; ++i) {
      if ((bytes_[i] & 0xfe) != 0x64) continue;
      info_.canonical[i] =
          repeats ? std::uint8_t{0xf3} : segment_prefix_byte(engine_segment(segment));
      info_.aliased = true;
    }
    // The engine takes the operand size from it, as AMD's processors do; Intel's take no notice.
    const bool narrows = mode_.bits64 && prefixes_.operand && (prefixes_.rex & kRexW) == 0 &&
                         wide_size(*info_.row) == WideSize::near_branch;
    for (std::size_t i = 0; narrows && i < prefixes_.count; ++i) {
      if (bytes_[i] != 0x66) continue;
      info_.canonical[i] = segment_prefix_byte(engine_segment(segment));
      info_.aliased = true;
    }
    for (std::size_t i = prefixes_.count; i < info_.length; ++i) {
      info_.canonical[i] = whole_code_[i - prefixes_.count];
      info_.aliased = info_.aliased || info_.canonical[i] != info_.bytes[i];
    }
    if (info_.is(Operation::clflush) && prefixes_.operand) make_plain_flush(segment);
    if (mode_.bits64) {
      avoid_engine_prefixes();
      avoid_engine_displacement();
    }
  }

  /// CLFLUSHOPT and CLWB become CLFLUSH, which is all the same for what the replay has of caches.
  void make_plain_flush(SegmentRegister segment) {
    constexpr std::uint8_t kReg = 0x38, kOperandSize = 0x66;
    const auto prefixes = std::span(info_.canonical).first(prefixes_.count);
    std::replace(prefixes.begin(), prefixes.end(), kOperandSize,
                 segment_prefix_byte(engine_segment(segment)));
    info_.canonical[prefixes_.count + 2] |= kReg;
    info_.aliased = true;
  }

  /// Prefixes that the engine does not take as processors in 64-bit mode do: ES, CS, SS and DS
  /// after FS or GS are without effect, and LAHF and SAHF have AH whatever REX says. Found on a
  /// host (docs/silicon.md).
  void avoid_engine_prefixes() {
    const auto put = [this](std::size_t at, SegmentRegister segment) {
      info_.canonical[at] = segment_prefix_byte(segment);
      info_.aliased = true;
    };
    bool overridden = false;
    for (std::size_t i = 0; i < prefixes_.count; ++i) {
      const std::uint8_t b = bytes_[i];
      const bool ignored = b == 0x26 || b == 0x2e || b == 0x36 || b == 0x3e;
      if (ignored && overridden) put(i, static_cast<SegmentRegister>(prefixes_.segment));
      overridden |= b == 0x64 || b == 0x65;
    }
    // POPCNT of 64 bits, which the engine makes of 16 after an operand-size prefix.
    const bool counts = (prefixes_.rex & kRexW) != 0 && info_.is(Operation::popcnt);
    for (std::size_t i = 0; counts && i < prefixes_.count; ++i) {
      if (bytes_[i] == 0x66) put(i, engine_segment(harmless_segment()));
    }
    // C6 and C7, which the engine refuses where REX.R makes a register of their ModRM.reg.
    const bool moves = map_ == OpcodeMap::one && (info_.opcode & 0xfe) == 0xc6;
    if (moves && (prefixes_.rex & kRexR) != 0) {
      info_.canonical[prefixes_.count - 1u] = static_cast<std::uint8_t>(prefixes_.rex & ~kRexR);
      info_.aliased = true;
    }
    if (prefixes_.rex != 0 && (info_.is(Operation::lahf) || info_.is(Operation::sahf))) {
      put(prefixes_.count - 1u, kDs);
    }
  }

  /// The engine counts a displacement from RIP after its own bytes where SHLD and SHRD have an
  /// immediate byte after them.
  void avoid_engine_displacement() {
    constexpr std::uint8_t kModRmRip = 0x05, kModAndRm = 0xc7;
    const bool shifts = info_.is(Operation::shld) || info_.is(Operation::shrd);
    const bool by_immediate = shifts && info_.row->operands[2] == OperandForm::Ib;
    if (!by_immediate || (info_.modrm & kModAndRm) != kModRmRip) return;
    const std::size_t first = info_.length - 5u;
    for (std::size_t i = first; i < first + 4 && ++info_.canonical[i] == 0; ++i) {
    }
    info_.aliased = true;
  }

  std::span<const std::uint8_t> bytes_;
  CodeMode mode_;
  const CpuTraits& traits_;
  Prefixes prefixes_;
  DecodedInstruction info_;
  std::array<std::uint8_t, kMaxInstructionBytes> stripped_{};
  std::span<std::uint8_t> whole_code_;  ///< of stripped_, after the prefixes
  std::span<std::uint8_t> code_;        ///< from the last byte of the opcode on
  OpcodeMap map_ = OpcodeMap::one;
  VexPrefix vex_;
  bool vex_refused_ = false;  ///< it, or what is before it, means nothing here
};

}  // namespace

DecodedInstruction decode_instruction(std::span<const std::uint8_t> bytes, CodeMode mode,
                                      CpuModel model) {
  return InstructionDecoder(bytes, mode, cpu_traits(model)).decode();
}

}  // namespace citcat
