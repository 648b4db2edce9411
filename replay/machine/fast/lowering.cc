#include "replay/machine/fast/lowering.h"

#include <cstring>

#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/fast_forms.h"
#include "x86/decode/encoded_operands.h"
#include "x86/instruction_features.h"

namespace citcat::fast {

namespace {

using Form = OperandForm;

constexpr std::uint8_t kZeroAt = State::kZero;
constexpr std::uint8_t kNoOperand = 0xff;

/// As an operand of 64 bits takes it.
constexpr std::uint64_t sign_extended(std::uint32_t value) {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)});
}
constexpr std::uint64_t sign_extended_byte(std::uint32_t value) {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(value)});
}
/// Where State has a general register.
constexpr std::uint8_t register_at(unsigned number) {
  return static_cast<std::uint8_t>(number * 8);
}
constexpr bool is_immediate(Form form) { return form >= Form::Ib && form <= Form::Iv; }
constexpr bool is_segment(Form form) {
  return form == Form::Sw || (form >= Form::ES && form <= Form::GS);
}

/// One instruction on its way.
class Lowering {
 public:
  Lowering(const DecodedInstruction& info, std::uint64_t eip, const CodeShape& shape,
           const CpuTraits& traits, const HandlerTable& table, HostVectors& vectors)
      : info_(info), shape_(shape), traits_(traits), t_(table), vectors_(vectors), eip_(eip) {
    next_ = offset_in_mode(eip + info.length, shape.bits64);
    word_ = shape.bits32 != info.operand_prefix ? 4 : 2;
    stack_word_ = word_;
    flat_stack_ = shape.stack32 && (shape.flat >> kSs & 1) != 0;
    if (shape.bits64) {
      const bool whole = (info.rex & kRexW) != 0;
      word_ = whole ? 8 : info.operand_prefix ? 2 : 4;
      stack_word_ = !whole && info.operand_prefix ? 2 : 8;
      flat_stack_ = true;
    }
  }

  Lowered run() {
    // LOCK changes nothing for a processor alone on its bus, where it is allowed; F2 and F3 mean
    // something on strings alone, and where they make another instruction of one it has another
    // row.
    if (info_.row == nullptr || info_.state != DecodeState::ok || info_.aliased) return out_;
    if (traits_.has_long_mode ? is_gated() : is_counting()) return out_;
    const FastForm form = fast_form(*info_.row);
    const bool found = form.way >= Way::jump ? end(form) : operate(form);
    if (!found) out_.kind = Kind::careful;
    return out_;
  }
  /// The operation puts down the second address, and the first is known.
  bool second_slot() const { return second_slot_; }

 private:
  using Kind = Lowered::Kind;

  /// True for what FeatureGate decides on processors with long mode.
  bool is_gated() const {
    constexpr std::uint8_t kPrefixes[4] = {0x26, 0x2e, 0x36, 0x3e};  // ES, CS, SS, DS
    for (unsigned i = 0; shape_.bits64 && i < info_.prefix_bytes; ++i) {
      for (unsigned segment = 0; segment < 4; ++segment) {
        const bool flat = (shape_.flat >> segment & 1) != 0;
        if (info_.bytes[i] == kPrefixes[segment] && !flat) return true;
      }
    }
    return feature_of(info_) != nullptr;
  }

  /// TZCNT or LZCNT of a processor before long mode, or what may be.
  bool is_counting() const {
    return shape_.counts_zeros && info_.mandatory_prefix == 0xf3 &&
           (info_.is(Operation::bsf) || info_.is(Operation::bsr));
  }

  /// What goes on after it. False where it is to be made elsewhere.
  bool operate(FastForm form) {
    out_.kind = Kind::plain;
    switch (form.way) {
      case Way::elsewhere:
        return false;
      case Way::operands:
        return plain(form.row);
      case Way::alu:
        return plain(form.row + rows_if(is_immediate(operand(1)), kCount<FastWord::alu>) +
                     rows_if(in_memory(1), 2 * kCount<FastWord::alu>));
      case Way::shift:
        return shift(form.row, 1, kCount<FastWord::shift>);
      case Way::double_shift:
        return shift(form.row, 2, kCount<FastWord::double_shift>);
      case Way::multiply:
        return plain(form.row + rows_if(is_immediate(operand(2)), 1));
      case Way::extend:
        return plain(form.row + operand_size(bytes_of(1)));
      case Way::test_bit:
        return plain(form.row + rows_if(is_immediate(operand(1)), kCount<FastWord::test_bit>));
      case Way::extend_accumulator:
        return set(form.row + operand_size(word_ / 2), operand_size(word_));
      case Way::word:
        return set(form.row, operand_size(word_));
      case Way::lea:
        return load_address(form.row);
      case Way::push:
        out_.pushes_memory = in_memory(0);
        return stacked(form.row + rows_if(is_immediate(operand(0)), kPushImmediate - kPush),
                       stack_word_);
      case Way::push_segment:
        return stacked(form.row, word_);
      case Way::pop:
        return (!in_memory(0) || info_.operands[1].kind == OperandKind::address) &&
               stacked(form.row, stack_word_);
      case Way::stacked_flags:
        return !shape_.v86 && stacked(form.row, stack_word_);
      case Way::stacked_all:
        return word_ == 4 && stacked(form.row, word_);
      case Way::leave_frame:
        return stacked(form.row, stack_word_);
      case Way::exchange_accumulator:
        // NOP, unless REX makes another register of it.
        if (info_.rm_field == 0) return set(kNothing, 0);
        out_.op.b = register_at(info_.rm_field);
        return set(form.row, operand_size(word_));
      case Way::compare_exchange_pair:
        return info_.operand_bytes != 8 && plain(form.row);
      case Way::vector:
        return vector(form.row);
      case Way::translate_byte:
        return set_with_memory(form.row, operand_size(1), info_.operands[0]);
      default:
        return set(form.row, 0);
    }
  }

  /// What ends its block, or is made by the tier itself.
  bool end(FastForm form) {
    Op& op = out_.op;
    out_.kind = Kind::branch;
    switch (form.way) {
      case Way::jump:
        return direct() && set(form.row, 0);
      case Way::loop:
        return direct() && set(form.row, operand_size(info_.address_bits / 8u));
      case Way::jump_indirect:
        return with_operands(form.row, stack_word_);
      case Way::call:
        if (!direct()) return false;
        op.displacement = behind();
        second_slot_ = true;
        return set(form.row + stack_row(), operand_size(stack_word_));
      case Way::call_indirect:
        op.immediate = behind();
        return with_operands(form.row + stack_row(), stack_word_);
      case Way::ret:
        op.immediate = is_immediate(operand(0)) ? info_.immediate : 0;
        return op.immediate < 0x8000 && set(form.row + stack_row(), operand_size(stack_word_));
      case Way::sti:
        op.immediate = next_;
        return set(form.row, 0);
      default:
        out_.kind = Kind::string;
        // Offsets that wrap at 4 GiB are rare in 64-bit mode.
        return !info_.lock && (!shape_.bits64 || info_.address_bits == 64);
    }
  }

  /// How far after the first row of an operation the one is that it needs.
  static unsigned rows_if(bool needed, unsigned rows) { return needed ? rows : 0; }

  // Handlers.
  bool set(Handler handler) {
    out_.op.handler = handler;
    return handler != nullptr;
  }
  bool set(unsigned row, unsigned size) { return set(t_[row].in_registers[size]); }
  bool set_with_memory(unsigned row, unsigned size, const MemoryOperand& operand) {
    return set(t_[row].in_memory[size][take_memory(operand) ? 1 : 0]);
  }
  /// The row's operands; the first has the size.
  bool plain(unsigned row) { return with_operands(row, bytes_of(0)); }
  bool stacked(unsigned row, unsigned bytes) { return with_operands(row + stack_row(), bytes); }
  unsigned stack_row() const { return flat_stack_ ? 1 : 0; }

  /// The row's operands.
  bool with_operands(unsigned row, unsigned bytes) {
    const unsigned size = operand_size(bytes);
    if (!take_operands()) return set(row, size);
    // The first access but for POP, which has read the stack by then.
    return set_with_memory(
        row, size, info_.operands[info_.row->accesses == AccessPattern::pop_operand ? 1 : 0]);
  }

  // Operands.
  Form operand(unsigned i) const { return info_.row->operands[i]; }
  bool in_memory(unsigned i) const {
    return !info_.register_form && memory_size(operand(i), word_) != 0;
  }
  unsigned bytes_of(unsigned i) const {
    return in_memory(i) ? memory_size(operand(i), word_) : register_size(operand(i), word_);
  }
  /// The general register that operand `i` is: kNoOperand where it is something else.
  std::uint8_t register_of(unsigned i) const {
    const Form form = operand(i);
    const unsigned bytes = register_size(form, word_);
    if (form == Form::AL || form == Form::rAX) return register_at(kEax);
    if (bytes == 0 || form == Form::CL || in_memory(i)) return kNoOperand;
    const bool by_reg = form >= Form::Gb && form <= Form::Gv;
    const unsigned number = by_reg ? info_.reg_field : info_.rm_field;
    // AH to BH are among those of bytes, unless there is a REX prefix.
    if (bytes != 1 || info_.rex != 0) return register_at(number);
    return static_cast<std::uint8_t>(register_at(number & 3) + (number >> 2));
  }

  /// Puts registers and immediates of the row's operands into the operation. True where one of them
  /// is in memory.
  bool take_operands() {
    Op& op = out_.op;
    bool memory = false, second = false;
    for (unsigned i = 0; i < info_.row->operands.size(); ++i) {
      memory |= in_memory(i);
      if (is_immediate(operand(i))) op.immediate = immediate(operand(i));
      if (is_segment(operand(i))) op.segment = info_.reg_field;
      const std::uint8_t at = register_of(i);
      if (at == kNoOperand) continue;
      (second ? op.b : op.a) = at;
      second = true;
    }
    return memory;
  }
  std::uint64_t immediate(Form form) const {
    if (form == Form::Ibs) return sign_extended_byte(info_.immediate);
    if (form != Form::Iv || word_ != 8) return sign_extended(info_.immediate);
    // Eight bytes, which are the last ones.
    std::uint64_t whole = 0;
    std::memcpy(&whole, &info_.bytes[info_.length - 8u], 8);
    return whole;
  }

  /// The memory operand. True where it is flat.
  bool take_memory(const MemoryOperand& operand) {
    Op& op = out_.op;
    const bool from_code = operand.base == kRip;
    op.base =
        operand.base < 0 || from_code ? kZeroAt : register_at(static_cast<unsigned>(operand.base));
    op.index = operand.index < 0 ? kZeroAt : register_at(static_cast<unsigned>(operand.index));
    op.shift = operand.shift;
    op.segment = operand.segment;
    op.displacement = static_cast<std::uint64_t>(operand.displacement) + (from_code ? eip_ : 0);
    const bool narrow =
        operand.width == AddressWidth::bits16 || operand.width == AddressWidth::low32;
    if (narrow) op.shift |= Op::kNarrow;
    return !narrow && (shape_.flat >> operand.segment & 1) != 0;
  }

  /// By CL, where that is operand `number`: `by_cl` rows after. By 0 nothing happens, but perhaps
  /// a read.
  bool shift(unsigned row, unsigned number, unsigned by_cl) {
    if (operand(number) == Form::CL) return plain(row + by_cl);
    const unsigned mask = bytes_of(0) == 8 ? 63 : 31;
    const unsigned count = operand(number) == Form::One ? 1 : info_.immediate & mask;
    const bool made = count != 0 && plain(row);
    out_.op.immediate = count;
    return made;
  }

  /// SSE and SSE2, which each processor with long mode has, and each host.
  bool vector(unsigned row) {
    const VectorForm* const form = traits_.has_long_mode ? vectors_.prepare(info_) : nullptr;
    if (form == nullptr) return false;
    const auto place = [](VectorForm::Part part, unsigned number) {
      if (part == VectorForm::Part::gpr) return register_at(number);
      return part == VectorForm::Part::vector ? static_cast<std::uint8_t>(number) : std::uint8_t{0};
    };
    out_.op.a = place(form->reg, info_.reg_field);
    out_.op.b = place(form->rm, info_.rm_field);
    out_.op.immediate = reinterpret_cast<std::uintptr_t>(form);
    if (info_.register_form) return set(row, 0);
    const MemoryOperand& operand = info_.operands[0];
    if (operand.size < 4) return false;
    return set_with_memory(row + (form->writes_memory ? 2 : 1),
                           operand.size == 16 ? 0 : operand_size(operand.size), operand);
  }

  bool load_address(unsigned row) {
    out_.op.a = register_of(0);
    return set_with_memory(row, operand_size(word_), named_address(info_));
  }

  /// As an offset that a branch or a call may lead to.
  std::uint64_t branch_offset(std::uint64_t to) const {
    return shape_.bits64 ? to : word_ == 2 ? to & 0xffff : to & 0xffffffff;
  }
  std::uint64_t behind() const { return branch_offset(next_); }
  /// Takes the target of a direct branch; false where it is refused.
  bool direct() {
    const auto distance = static_cast<std::uint32_t>(info_.target_displacement);
    const std::uint64_t to = branch_offset(next_ + sign_extended(distance));
    const bool allowed = shape_.bits64 ? CpuContext::is_canonical(to) : to <= shape_.code_limit;
    if (!allowed) return false;
    out_.op.immediate = to;
    out_.op.displacement = next_;
    out_.known = 1;
    out_.address[0] = shape_.linear(to);
    return true;
  }

  const DecodedInstruction& info_;
  const CodeShape& shape_;
  const CpuTraits& traits_;
  const HandlerTable& t_;
  HostVectors& vectors_;
  std::uint64_t eip_, next_ = 0;
  unsigned word_ = 0;        ///< bytes of an operand, where that is a word
  unsigned stack_word_ = 0;  ///< the same of what is pushed and popped, and of near branches
  bool flat_stack_ = false;
  bool second_slot_ = false;
  Lowered out_;
};

}  // namespace

Lowered lower(const DecodedInstruction& info, std::uint64_t eip, const CodeShape& shape,
              const CpuTraits& traits, const HandlerTable& table, HostVectors& vectors) {
  Lowering lowering(info, eip, shape, traits, table, vectors);
  Lowered out = lowering.run();
  if (out.known != 0 && lowering.second_slot()) out.op.slot = 1;
  return out;
}

}  // namespace citcat::fast
