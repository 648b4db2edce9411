// Opcode facts are from the Intel SDM vol. 2, appendix A. Orders of accesses that no manual gives
// were read off buses: the 80286's in its single-step suite, later ones in recordings
// (docs/fidelity.md).

#include "replay/operand_describer.h"

#include <optional>

#include "formats/error.h"
#include "replay/opcode_set.h"
#include "replay/opcode_support.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

/// What FXSAVE and FXRSTOR touch of their 512-byte area outside 64-bit mode: header, eight x87 and
/// eight XMM registers (SDM vol. 1, table 10-2). The rest is reserved or the program's own.
constexpr unsigned kFxBytes = 32 + 8 * 16 + 8 * 16;

std::int8_t gpr_number(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE) return kNoRegister;
  const ZyanI8 id = ZydisRegisterGetId(reg);
  return id >= 0 && id < 8 ? static_cast<std::int8_t>(id) : kNoRegister;
}

std::uint8_t scale_shift(unsigned scale) {
  return static_cast<std::uint8_t>(scale == 8 ? 3 : scale == 4 ? 2 : scale == 2 ? 1 : 0);
}

/// Kinds that follow from the opcode alone and have at most an explicit operand.
struct KindRow {
  OpcodeSet opcodes;
  Kind kind;
};

constexpr KindRow kOneByteKinds[] = {
    {{0x9b}, Kind::fwait},
    {{{0xd8, 0xdf}}, Kind::x87},
    {{0xe4, 0xe5, 0xec, 0xed}, Kind::in},
    {{0xe6, 0xe7, 0xee, 0xef}, Kind::out},
    {{0xf4}, Kind::hlt},
    {{0xfa}, Kind::cli},
    {{0xfb}, Kind::sti},
};

constexpr KindRow kTwoByteKinds[] = {
    {{0x06}, Kind::clts},
    {{0x08, 0x09}, Kind::cache_flush},
    {{0x20}, Kind::mov_from_cr},
    {{0x21}, Kind::mov_from_dr},
    {{0x22}, Kind::mov_to_cr},
    {{0x23}, Kind::mov_to_dr},
    {{0x24, 0x26}, Kind::mov_test_register},
    {{0x30}, Kind::wrmsr},
    {{0x31}, Kind::rdtsc},
    {{0x32}, Kind::rdmsr},
    {{0x33}, Kind::rdpmc},
    {{0x34}, Kind::sysenter},
    {{0x35}, Kind::sysexit},
    {{0x77}, Kind::emms},
    {{0xa2}, Kind::cpuid},
    {{0xaa}, Kind::rsm},
};

template <std::size_t N>
std::optional<Kind> find_kind(const KindRow (&rows)[N], unsigned opcode) {
  for (const KindRow& row : rows) {
    if (row.opcodes.has(opcode)) return row.kind;
  }
  return std::nullopt;
}

/// AND, OR, XOR and TEST leave AF undefined: rows 1, 4 and 6 of the arithmetic operations.
bool is_logic(unsigned operation) { return operation == 1 || operation == 4 || operation == 6; }

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

  using Member = void (Describer::*)();
  struct MemberRow {
    OpcodeSet opcodes;
    Member describe;
  };

  template <std::size_t N>
  static Member find_member(const MemberRow (&rows)[N], unsigned opcode, Member otherwise) {
    for (const MemberRow& row : rows) {
      if (row.opcodes.has(opcode)) return row.describe;
    }
    return otherwise;
  }

  void describe_one_byte() {
    static constexpr MemberRow kRows[] = {
        {{{0x00, 0x3f}}, &Describer::describe_arithmetic_rows},
        {{{0x40, 0x5f}}, &Describer::describe_register_rows},
        {{0x60}, &Describer::describe_push_all},
        {{0x61}, &Describer::describe_pop_all},
        {{0x62}, &Describer::describe_bound},
        {{0x68, 0x6a, 0x9c}, &Describer::describe_push},
        {{{0x6c, 0x6f}, {0xa4, 0xa7}, {0xaa, 0xaf}}, &Describer::describe_string},
        {{{0x70, 0x7f}}, &Describer::describe_conditional_jump},
        {{0x8e}, &Describer::describe_mov_to_segment},
        {{0x8f}, &Describer::describe_pop_operand},
        {{0x9a, 0xea}, &Describer::describe_far_direct},
        {{0x9d}, &Describer::describe_popf},
        {{0xc2, 0xc3, 0xca, 0xcb}, &Describer::describe_return},
        {{0xc4, 0xc5}, &Describer::describe_les_lds},
        {{0xc8}, &Describer::describe_enter},
        {{0xc9}, &Describer::describe_leave},
        {{{0xcc, 0xce}, 0xf1}, &Describer::describe_interrupt},
        {{0xcf}, &Describer::describe_iret},
        {{0xd7}, &Describer::describe_xlat},
        {{{0xe0, 0xe3}}, &Describer::describe_loop},
        {{0xe8, 0xe9, 0xeb}, &Describer::describe_near_direct},
        {{0xff}, &Describer::describe_group5},
    };
    (this->*find_member(kRows, info_.opcode, &Describer::describe_plain_one_byte))();
  }

  void describe_arithmetic_rows() {
    const unsigned opcode = info_.opcode;
    if ((opcode & 7) < 6) {
      if (is_logic(opcode >> 3)) info_.flag_rule = FlagRule::logic;
      add_explicit();
      return add_operand_eas();
    }
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

  void describe_mov_to_segment() {
    info_.kind = Kind::mov_to_segment;
    note_segment_load();
    if (add_explicit(2, true, false) != nullptr) add_ea_operand(0);
  }

  void note_segment_load() {
    info_.shadows_interrupts = info_.reg_field == kSs || model_ == CpuModel::i8088;
    info_.control_flow = info_.reg_field == kCs;
    info_.ends_block = info_.shadows_interrupts || info_.control_flow;
  }

  void describe_push_all() {
    add_ea(EaSource::stack_push, word_);
    add_push(word_, 8);
  }

  // The 80286 fetches AX, the last word, before the others.
  void describe_pop_all() {
    add_ea(EaSource::stack_pop);
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

  void describe_les_lds() { describe_load_far_pointer(info_.opcode == 0xc4 ? kEs : kDs); }

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

  void describe_conditional_jump() {
    info_.kind = Kind::jcc;
    add_ea(EaSource::target);
  }

  void describe_loop() {
    info_.kind = Kind::loop;
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
    info_.kind = find_kind(kOneByteKinds, opcode).value_or(Kind::plain);
    info_.shadows_interrupts = info_.kind == Kind::sti;
    set_one_byte_flag_rule();
    if (operand == nullptr) return;
    add_ea_operand(0);
    if (opcode == 0x8c) operand->size = 2;  // MOV m, Sreg
    // ARPL writes when it adjusts; shifts by CL or an immediate when the count is not zero.
    constexpr OpcodeSet kConditional = {0x63, 0xc0, 0xc1, 0xd2, 0xd3};
    operand->conditional_write = kConditional.has(opcode);
  }

  void set_one_byte_flag_rule() {
    constexpr OpcodeSet kGroup1 = {0x80, 0x81, 0x83};
    constexpr OpcodeSet kTest = {0x84, 0x85, 0xa8, 0xa9};
    constexpr OpcodeSet kShifts = {0xc0, 0xc1, {0xd0, 0xd3}};
    const unsigned opcode = info_.opcode;
    if (kTest.has(opcode)) info_.flag_rule = FlagRule::logic;
    if (kGroup1.has(opcode) && is_logic(info_.reg_field)) info_.flag_rule = FlagRule::logic;
    if (opcode == 0x69 || opcode == 0x6b) info_.flag_rule = FlagRule::imul_two_operand;
    if (opcode == 0xd4) info_.flag_rule = FlagRule::aam;
    if (opcode == 0xd5) info_.flag_rule = FlagRule::aad;
    if (opcode == 0xf6 || opcode == 0xf7) set_group3_flags();
    // /6 shifts left from the 286 on; the 8088 sets all bits.
    const bool sets_bits = model_ == CpuModel::i8088 && info_.reg_field == 6;
    if (kShifts.has(opcode) && !sets_bits) set_shift_flags();
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
    static constexpr MemberRow kRows[] = {
        {{0x00, 0x01}, &Describer::describe_system_group},
        {{0x02, 0x03}, &Describer::describe_lar_lsl},
        {{0x0d, {0x18, 0x1f}}, &Describer::describe_hint},
        {{{0x80, 0x8f}}, &Describer::describe_conditional_jump},
        {{0xa0, 0xa8}, &Describer::describe_push_fs_gs},
        {{0xa1, 0xa9}, &Describer::describe_pop_fs_gs},
        {{0xa3, 0xab, 0xb3, 0xbb}, &Describer::describe_bit_string},
        {{0xae}, &Describer::describe_group15},
        {{0xb2, 0xb4, 0xb5}, &Describer::describe_lss_lfs_lgs},
        {{0xf7}, &Describer::describe_masked_move},
    };
    if (const std::optional<Kind> kind = find_kind(kTwoByteKinds, info_.opcode)) {
      info_.kind = *kind;
      return;
    }
    (this->*find_member(kRows, info_.opcode, &Describer::describe_plain_two_byte))();
  }

  void describe_lar_lsl() {
    add_explicit(2, true, false);
    add_operand_eas();
  }

  void describe_hint() {}  // prefetches and no-operations: no access

  void describe_push_fs_gs() {
    info_.reg_field = info_.opcode < 0xa8 ? kFs : kGs;
    describe_push_segment();
  }

  void describe_pop_fs_gs() {
    info_.reg_field = info_.opcode < 0xa8 ? kFs : kGs;
    describe_pop_segment();
  }

  void describe_lss_lfs_lgs() {
    describe_load_far_pointer(info_.opcode == 0xb2 ? kSs : info_.opcode == 0xb4 ? kFs : kGs);
  }

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
      if (reg == 4 && info_.register_form && info_.operand_bytes == 4) info_.kind = Kind::smsw;
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
    constexpr OpcodeSet kDoubleShifts = {0xa4, 0xa5, 0xac, 0xad};
    // CMPXCHG and CMPXCHG8B write in either case: the old value back when unequal.
    constexpr OpcodeSet kExchanges = {0xb0, 0xb1, 0xc7};
    const unsigned opcode = info_.opcode;
    MemoryOperand* operand = add_explicit();
    if (kDoubleShifts.has(opcode)) info_.flag_rule = FlagRule::double_shift;
    if (opcode == 0xaf) info_.flag_rule = FlagRule::imul_two_operand;
    if (opcode == 0xba) info_.flag_rule = FlagRule::bit_test;
    if (opcode == 0xbc || opcode == 0xbd) info_.flag_rule = FlagRule::bit_scan;
    if (operand != nullptr) {
      operand->conditional_write = kDoubleShifts.has(opcode);
      if (kExchanges.has(opcode)) operand->read = operand->write = true;
      add_ea_operand(0);
    }
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
    constexpr OpcodeSet kArithmetic = {0x2a, {0x2c, 0x2f}, {0x51, 0x53}, {0x58, 0x5f}, 0x7c,
                                       0x7d, 0xc2,         0xd0,         0xe6};
    return kArithmetic.has(opcode);
  }

  // --- the rest ----------------------------------------------------------------------------------

  static bool transfers_control(Kind kind) {
    return (kind >= Kind::jcc && kind <= Kind::icebp) || kind == Kind::sysenter ||
           kind == Kind::sysexit || kind == Kind::rsm || kind == Kind::loadall;
  }

  /// Input and output, HLT, and everything that changes how the next instruction executes.
  static bool must_be_last(Kind kind) {
    return (kind >= Kind::ins && kind <= Kind::hlt) || kind == Kind::mov_to_cr ||
           (kind >= Kind::mov_to_dr && kind <= Kind::sti && kind != Kind::mov_from_dr) ||
           kind == Kind::popf;
  }

  void finish() {
    if (transfers_control(info_.kind)) {
      info_.control_flow = true;
      info_.operand_bytes = word_;
    }
    if (info_.control_flow || info_.is_repeated() || must_be_last(info_.kind)) {
      info_.ends_block = true;
    }
  }

  InstructionInfo& info_;
  CpuModel model_;
  const ZydisDecodedInstruction& decoded_;
  std::span<const ZydisDecodedOperand> zydis_operands_;
  std::uint8_t word_;  ///< 2 or 4: the operand size of forms without a byte variant
};

}  // namespace

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

void describe_instruction(InstructionInfo& info, CpuModel model,
                          const ZydisDecodedInstruction& decoded,
                          std::span<const ZydisDecodedOperand> operands) {
  Describer(info, model, decoded, operands).run();
}

}  // namespace citcat
