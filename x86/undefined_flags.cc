// The 80286 column was fitted to the single-step tests of a Harris 80C286 (SingleStepTests/80286),
// every rule agreeing with all tests of its forms. The 386-and-later column holds what a simulated
// 486, Pentium III and Pentium 4 (Bochs) did differently from the engine in 1.9 million recorded
// instructions: bit scans and bit tests, nothing else. For the 8088 nothing is known.

#include "x86/undefined_flags.h"

#include "events/machine/cpu_traits.h"

namespace citcat {
namespace {

constexpr std::uint32_t kArithmetic = kArithmeticFlags;

bool even_parity(std::uint32_t value) { return (__builtin_popcount(value & 0xff) & 1) == 0; }

std::uint32_t with(std::uint32_t flags, std::uint32_t flag, bool set) {
  return set ? flags | flag : flags & ~flag;
}

/// Values of one instruction with the widths that its rule works on.
class FlagFixer {
 public:
  FlagFixer(const DecodedInstruction& info, const FlagInputs& before, std::uint32_t eflags,
            const std::uint64_t* gpr, std::uint32_t memory)
      : info_(info), before_(before), gpr_(gpr), memory_(memory), flags_(eflags) {
    bits_ = 8u * info.operand_bytes;
  }

  std::uint32_t fix_286() {
    switch (info_.flag_rule) {
      case FlagRule::shift_left:
      case FlagRule::shift_right:
      case FlagRule::shift_arithmetic:
      case FlagRule::rotate_left:
      case FlagRule::rotate_right:
      case FlagRule::rotate_carry_left:
      case FlagRule::rotate_carry_right:
        shift_or_rotate();
        break;
      case FlagRule::mul:
      case FlagRule::imul:
        product(high_half_of_accumulator());
        break;
      case FlagRule::imul_two_operand:
        product(high_half_of_immediate_product());
        break;
      case FlagRule::div:
      case FlagRule::idiv:
        quotient();
        break;
      case FlagRule::daa:
      case FlagRule::das:
        decimal_adjust();
        break;
      case FlagRule::aaa:
      case FlagRule::aas:
        ascii_adjust();
        break;
      case FlagRule::aam:
        clear(kOf | kAf | kCf);
        break;
      case FlagRule::aad:
        ascii_adjust_before_division();
        break;
      default:
        break;
    }
    return flags_;
  }

  std::uint32_t fix_later() {
    if (info_.flag_rule == FlagRule::bit_test) {
      flags_ = (flags_ & ~(kArithmetic & ~kCf)) | (before_.eflags & kArithmetic & ~kCf);
    } else if (info_.flag_rule == FlagRule::bit_scan && (flags_ & kZf) != 0) {
      // No bit was set: the other flags stay as they were.
      flags_ = (flags_ & ~kArithmetic) | (before_.eflags & kArithmetic) | kZf;
    } else if (info_.flag_rule == FlagRule::bit_scan) {
      clear(kArithmetic);
      set(kPf, even_parity(static_cast<std::uint32_t>(gpr_[info_.reg_field])));
    }
    return flags_;
  }

 private:
  void set(std::uint32_t flag, bool value) { flags_ = with(flags_, flag, value); }
  void clear(std::uint32_t mask) { flags_ &= ~mask; }

  std::uint32_t cut(std::uint32_t value) const {
    return bits_ == 32 ? value : value & ((1u << bits_) - 1);
  }
  bool sign(std::uint32_t value) const { return (value >> (bits_ - 1) & 1) != 0; }
  bool next_to_sign(std::uint32_t value) const { return (value >> (bits_ - 2) & 1) != 0; }

  /// Register `number` at operand width: AL..BH for bytes.
  template <typename Registers>
  std::uint32_t register_value(const Registers& gpr, unsigned number) const {
    if (bits_ == 8 && number >= 4) {
      return static_cast<std::uint32_t>(gpr[number - 4]) >> 8 & 0xff;
    }
    return cut(static_cast<std::uint32_t>(gpr[number]));
  }
  std::uint32_t operand_after() const {
    return info_.register_form ? register_value(gpr_, info_.rm_field) : cut(memory_);
  }
  std::uint32_t operand_before() const {
    return info_.register_form ? register_value(before_.gpr, info_.rm_field) : cut(before_.memory);
  }
  std::uint32_t accumulator_before() const { return before_.gpr[kEax]; }
  std::uint32_t accumulator_after() const { return static_cast<std::uint32_t>(gpr_[kEax]); }

  unsigned shift_count() const {
    return citcat::shift_count(info_, static_cast<std::uint8_t>(before_.gpr[kEcx])) &
           shift_count_bits(info_);
  }

  void shift_or_rotate() {
    if (shift_count() == 0) {
      flags_ = (flags_ & ~kArithmetic) | (before_.eflags & kArithmetic);
      return;
    }
    const std::uint32_t result = operand_after();
    const bool carry = (flags_ & kCf) != 0;
    const bool turned = sign(result) != next_to_sign(result);
    switch (info_.flag_rule) {
      case FlagRule::shift_left:
        set(kOf, sign(result) != carry);
        set(kAf, (result & 0x10) != 0);
        break;
      case FlagRule::shift_right:
        set(kOf, turned);
        set(kAf, true);
        break;
      case FlagRule::shift_arithmetic:
        clear(kOf);
        set(kAf, true);
        break;
      case FlagRule::rotate_left:
      case FlagRule::rotate_carry_left:
        set(kOf, sign(result) != carry);
        set(kAf, (before_.eflags & kAf) != 0);
        break;
      default:
        set(kOf, turned);
        set(kAf, (before_.eflags & kAf) != 0);
    }
  }

  std::uint32_t high_half_of_accumulator() const {
    if (bits_ == 8) return accumulator_after() >> 8 & 0xff;
    return cut(static_cast<std::uint32_t>(gpr_[kEdx]));
  }

  /// 69 and 6B (the only two-operand form before the 386): the part of the product thrown away.
  std::uint32_t high_half_of_immediate_product() const {
    const auto factor = static_cast<std::int16_t>(operand_before());
    const std::int32_t immediate = info_.row->operands[2] == OperandForm::Ibs
                                       ? static_cast<std::int8_t>(info_.immediate)
                                       : static_cast<std::int16_t>(info_.immediate);
    return static_cast<std::uint32_t>(factor * immediate) >> 16;
  }

  void product(std::uint32_t high) {
    set(kSf, sign(high));
    set(kZf, high == 0);
    set(kPf, even_parity(high));
    set(kAf, true);
  }

  void quotient() {
    const bool bytes = bits_ == 8;
    const std::uint32_t remainder =
        bytes ? accumulator_after() >> 8 & 0xff : cut(static_cast<std::uint32_t>(gpr_[kEdx]));
    const std::uint32_t quotient = cut(accumulator_after());
    const std::uint32_t divisor = operand_before();
    set(kAf, true);
    set(kSf, sign(remainder));
    set(kZf, remainder == 0);
    set(kPf, even_parity(remainder));
    bool carry = !sign(divisor);
    if (info_.flag_rule == FlagRule::div) {
      carry = (quotient & 1) == 0 || (std::uint64_t{remainder} + divisor) >> bits_ != 0;
    }
    set(kCf, carry);
    set(kOf, carry);
  }

  /// Correction by 06h, 60h or 66h, from AL, AF and CF before (80286 Programmer's Reference, DAA).
  void decimal_adjust() {
    const std::uint32_t al = accumulator_before() & 0xff;
    std::uint32_t correction = 0;
    if ((al & 0xf) > 9 || (before_.eflags & kAf) != 0) correction |= 0x06;
    if (al > 0x99 || (before_.eflags & kCf) != 0) correction |= 0x60;
    set(kOf, byte_overflow(al, correction, info_.flag_rule == FlagRule::das));
  }

  void ascii_adjust() {
    const std::uint32_t al = accumulator_before() & 0xff;
    const bool adjust = (al & 0xf) > 9 || (before_.eflags & kAf) != 0;
    const std::uint32_t correction = adjust ? 6 : 0;
    const bool subtract = info_.flag_rule == FlagRule::aas;
    const std::uint32_t sum = (subtract ? al - correction : al + correction) & 0xff;
    set(kOf, byte_overflow(al, correction, subtract));
    set(kSf, (sum & 0x80) != 0);
    set(kZf, sum == 0);
    set(kPf, even_parity(sum));
  }

  /// Ends in the byte addition AL + low byte of AH * base, whose carries show.
  void ascii_adjust_before_division() {
    const std::uint32_t al = accumulator_before() & 0xff;
    const std::uint32_t addend = (accumulator_before() >> 8 & 0xff) * info_.immediate & 0xff;
    set(kCf, al + addend > 0xff);
    set(kAf, (al & 0xf) + (addend & 0xf) > 0xf);
    set(kOf, al + addend > 0xff);  // as CF, not the signed overflow
  }

  static bool byte_overflow(std::uint32_t a, std::uint32_t b, bool subtract) {
    const std::uint32_t result = subtract ? a - b : a + b;
    const std::uint32_t differs = subtract ? a ^ b : ~(a ^ b);
    return (differs & (a ^ result) & 0x80) != 0;
  }

  const DecodedInstruction& info_;
  const FlagInputs& before_;
  const std::uint64_t* gpr_;
  std::uint32_t memory_;
  std::uint32_t flags_;
  unsigned bits_ = 16;
};

}  // namespace

bool has_flag_rule(const DecodedInstruction& info, CpuModel model) {
  switch (cpu_traits(model).undefined_flags) {
    case CpuTraits::UndefinedFlags::none:
      return false;
    case CpuTraits::UndefinedFlags::i286:
      return info.flag_rule != FlagRule::none && info.flag_rule != FlagRule::logic;
    case CpuTraits::UndefinedFlags::later:
      break;
  }
  return info.flag_rule == FlagRule::bit_scan || info.flag_rule == FlagRule::bit_test;
}

std::uint32_t fixed_flags(const DecodedInstruction& info, CpuModel model, const FlagInputs& before,
                          std::uint32_t eflags, const std::uint64_t* gpr, std::uint32_t memory) {
  if (!has_flag_rule(info, model)) return eflags;
  FlagFixer fixer(info, before, eflags, gpr, memory);
  const bool early = cpu_traits(model).undefined_flags == CpuTraits::UndefinedFlags::i286;
  return early ? fixer.fix_286() : fixer.fix_later();
}

}  // namespace citcat
