#include "x86/microcode_8086.h"

#include <algorithm>

#include "formats/io/error.h"

namespace citcat {
namespace {

/// The arithmetic unit at one width.
class Alu8086 {
 public:
  explicit Alu8086(unsigned bits) : bits_(bits), mask_((1u << bits) - 1) {}

  unsigned bits() const { return bits_; }
  std::uint32_t cut(std::uint32_t value) const { return value & mask_; }
  std::uint32_t all_ones() const { return mask_; }
  bool sign(std::uint32_t value) const { return (value >> (bits_ - 1) & 1) != 0; }

  /// SF, ZF and PF of `value`.
  std::uint32_t result_flags(std::uint32_t value) const {
    const std::uint32_t v = cut(value);
    const bool even = (__builtin_popcount(v & 0xff) & 1) == 0;
    return (sign(v) ? kSf : 0) | (v == 0 ? kZf : 0) | (even ? kPf : 0);
  }
  struct Sum {
    std::uint32_t value = 0, flags = 0;
    bool carry() const { return (flags & kCf) != 0; }
  };
  Sum add(std::uint32_t a, std::uint32_t b, bool carry = false) const {
    const std::uint32_t sum = a + b + (carry ? 1u : 0u);
    return finish(sum, a ^ b ^ sum, ~(a ^ b) & (a ^ sum));
  }
  Sum subtract(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t difference = a - b;
    return finish(difference, a ^ b ^ difference, (a ^ b) & (a ^ difference));
  }
  /// Returns what falls out on the left.
  bool rotate_left(std::uint32_t& value, bool carry) const {
    const bool out = sign(value);
    value = cut(value << 1 | (carry ? 1u : 0u));
    return out;
  }

 private:
  /// `carries`: a bit is set where a carry came into it. `overflow`: in its sign.
  Sum finish(std::uint32_t value, std::uint32_t carries, std::uint32_t overflow) const {
    std::uint32_t flags = result_flags(value);
    if ((value >> bits_ & 1) != 0) flags |= kCf;
    if ((carries & 0x10) != 0) flags |= kAf;
    if (sign(overflow)) flags |= kOf;
    return {cut(value), flags};
  }

  unsigned bits_;
  std::uint32_t mask_;
};

std::uint32_t with_arithmetic(std::uint32_t flags, std::uint32_t arithmetic) {
  return (flags & ~kArithmeticFlags) | arithmetic;
}

// ---------------------------------------------------------------------------------------------
// Multiplication: CORX makes the product of absolute values, NEGATE gives it its sign. A REP prefix
// sets the flag F1, which says that there is one to be given.

MicrocodeResult multiply(const DecodedInstruction& info, const MicrocodeInput& in) {
  const Alu8086 alu(8u * info.operand_bytes);
  const bool is_signed = info.flag_rule == FlagRule::imul;
  const auto extended = [&](std::uint32_t value) {
    const std::uint32_t v = alu.cut(value);
    return is_signed && alu.sign(v) ? v | ~alu.all_ones() : v;
  };
  std::uint32_t product = extended(in.ax) * extended(in.operand);
  if (in.is_behind_repeat) product = 0u - product;
  const std::uint32_t low = alu.cut(product), high = alu.cut(product >> alu.bits());
  // MULCOF passes the upper half through the unit; IMULCOF adds the sign of the lower one to it,
  // which leaves 0 where the upper half is only that sign.
  const Alu8086::Sum test = alu.add(high, 0, is_signed && alu.sign(low));
  const std::uint32_t carries = test.value == 0 ? 0 : kCf | kOf;
  MicrocodeResult out;
  out.flags = with_arithmetic(in.flags, (test.flags & ~(kCf | kOf)) | carries);
  out.ax = static_cast<std::uint16_t>(alu.bits() == 8 ? product : low);
  out.dx = static_cast<std::uint16_t>(alu.bits() == 8 ? in.dx : high);
  return out;
}

// ---------------------------------------------------------------------------------------------
// Division

/// CORD divides tmpA:tmpC by tmpB.
struct Cord {
  std::uint32_t remainder = 0;
  std::uint32_t complement = 0;  ///< of the quotient
  std::uint32_t flags = 0;       ///< of the last subtraction that sets them
  bool carry = false;            ///< out of the last rotation: the quotient's sign is clear
  bool refused = false;          ///< the quotient has too many bits
};

Cord run_cord(const Alu8086& alu, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  Cord out;
  const Alu8086::Sum first = alu.subtract(a, b);
  out.flags = first.flags;
  out.refused = !first.carry();
  if (out.refused) return out;
  bool carry = true;
  for (unsigned i = 0; i < alu.bits(); ++i) {
    carry = alu.rotate_left(c, carry);
    carry = alu.rotate_left(a, carry);
    const Alu8086::Sum rest = alu.subtract(a, b);
    if (carry) {  // it fits, whatever the unit says: no flags are taken from it
      a = rest.value;
      carry = false;
      continue;
    }
    out.flags = rest.flags;
    carry = rest.carry();
    if (!carry) a = rest.value;
  }
  alu.rotate_left(c, carry);
  out.complement = c;
  out.remainder = a;
  out.carry = alu.sign(c);
  return out;
}

MicrocodeResult divide_error(const MicrocodeInput& in, std::uint32_t arithmetic) {
  MicrocodeResult out;
  out.divide_error = true;
  out.flags = with_arithmetic(in.flags, arithmetic);
  return out;
}

/// Quotient and remainder, after the flags CORD has left.
MicrocodeResult quotient_result(const Alu8086& alu, const MicrocodeInput& in,
                                std::uint32_t quotient, std::uint32_t remainder,
                                std::uint32_t arithmetic) {
  MicrocodeResult out;
  out.flags = with_arithmetic(in.flags, arithmetic);
  out.dx = in.dx;
  if (alu.bits() == 8) {
    out.ax = static_cast<std::uint16_t>(alu.cut(remainder) << 8 | alu.cut(quotient));
  } else {
    out.ax = static_cast<std::uint16_t>(quotient);
    out.dx = static_cast<std::uint16_t>(remainder);
  }
  return out;
}

MicrocodeResult divide(const DecodedInstruction& info, const MicrocodeInput& in) {
  const Alu8086 alu(8u * info.operand_bytes);
  const std::uint32_t high = alu.bits() == 8 ? in.ax >> 8u : in.dx, low = alu.cut(in.ax);
  const Cord cord = run_cord(alu, high, in.operand, low);
  if (cord.refused) return divide_error(in, cord.flags);
  const std::uint32_t flags = (cord.flags & ~kCf) | (cord.carry ? kCf : 0);
  return quotient_result(alu, in, ~cord.complement, cord.remainder, flags);
}

/// PREIDIV makes both operands positive and notes in F1 whether the quotient is negative, which a
/// REP prefix turns round; POSTIDIV refuses what has a bit more than a positive quotient may have,
/// so that the smallest negative one is refused too.
MicrocodeResult divide_signed(const DecodedInstruction& info, const MicrocodeInput& in) {
  const Alu8086 alu(8u * info.operand_bytes);
  std::uint32_t high = alu.bits() == 8 ? in.ax >> 8u : in.dx, low = alu.cut(in.ax);
  const bool dividend_negative = alu.sign(high), divisor_negative = alu.sign(in.operand);
  if (dividend_negative) {
    high = alu.cut(low != 0 ? ~high : 0u - high);
    low = alu.cut(0u - low);
  }
  const std::uint32_t divisor = alu.cut(divisor_negative ? 0u - in.operand : in.operand);
  const Cord cord = run_cord(alu, high, divisor, low);
  if (cord.refused) return divide_error(in, cord.flags);
  if (!cord.carry) return divide_error(in, cord.flags & ~kCf);
  const bool negative = (dividend_negative != divisor_negative) != in.is_behind_repeat;
  return quotient_result(alu, in, negative ? cord.complement + 1 : ~cord.complement,
                         dividend_negative ? 0u - cord.remainder : cord.remainder,
                         cord.flags & ~(kCf | kOf));
}

// ---------------------------------------------------------------------------------------------
// Decimal numbers

/// AAM divides AL by its operand with CORD, whose first subtraction leaves the flags where that is
/// 0.
MicrocodeResult adjust_after_multiplication(const DecodedInstruction& info,
                                            const MicrocodeInput& in) {
  const Alu8086 alu(8);
  const Cord cord = run_cord(alu, 0, info.immediate & 0xff, in.ax & 0xff);
  if (cord.refused) return divide_error(in, cord.flags);
  MicrocodeResult out;
  out.flags = with_arithmetic(in.flags, alu.result_flags(cord.remainder));
  out.ax = static_cast<std::uint16_t>(alu.cut(~cord.complement) << 8 | cord.remainder);
  out.dx = in.dx;
  return out;
}

/// AAD ends in the addition of AL and the lower byte of the product.
MicrocodeResult adjust_before_division(const DecodedInstruction& info, const MicrocodeInput& in) {
  const Alu8086 alu(8);
  const std::uint32_t product = (in.ax >> 8u) * (info.immediate & 0xff);
  const Alu8086::Sum sum = alu.add(in.ax & 0xff, alu.cut(product));
  MicrocodeResult out;
  out.flags = with_arithmetic(in.flags, sum.flags);
  out.ax = static_cast<std::uint16_t>(sum.value);
  out.dx = in.dx;
  return out;
}

/// DAA and DAS: one addition or subtraction of 0, 6, 60 or 66, whose flags show, but for AF and CF.
/// With AF set the upper digit is looked at with the carry that the lower one makes: above 9F.
MicrocodeResult adjust_packed(const DecodedInstruction& info, const MicrocodeInput& in) {
  const Alu8086 alu(8);
  const std::uint32_t al = in.ax & 0xff;
  const bool half = (in.flags & kAf) != 0;
  const bool low = half || (al & 0xf) > 9;
  const bool high = (in.flags & kCf) != 0 || al > (half ? 0x9f : 0x99);
  const std::uint32_t correction = (low ? 0x06u : 0u) + (high ? 0x60u : 0u);
  const Alu8086::Sum sum =
      info.flag_rule == FlagRule::daa ? alu.add(al, correction) : alu.subtract(al, correction);
  MicrocodeResult out;
  const std::uint32_t carries = (low ? kAf : 0) | (high ? kCf : 0);
  out.flags = with_arithmetic(in.flags, (sum.flags & ~(kAf | kCf)) | carries);
  out.ax = static_cast<std::uint16_t>((in.ax & 0xff00u) | sum.value);
  out.dx = in.dx;
  return out;
}

/// AAA and AAS: the flags, but for AF and CF, are those of the sum before its upper digit goes.
MicrocodeResult adjust_unpacked(const DecodedInstruction& info, const MicrocodeInput& in) {
  const Alu8086 alu(8);
  const std::uint32_t al = in.ax & 0xff, ah = in.ax >> 8u;
  const bool adjusts = (in.flags & kAf) != 0 || (al & 0xf) > 9;
  const bool adds = info.flag_rule == FlagRule::aaa;
  const std::uint32_t correction = adjusts ? 6 : 0, step = adjusts ? 1 : 0;
  const Alu8086::Sum sum = adds ? alu.add(al, correction) : alu.subtract(al, correction);
  MicrocodeResult out;
  const std::uint32_t carries = adjusts ? kAf | kCf : 0;
  out.flags = with_arithmetic(in.flags, (sum.flags & ~(kAf | kCf)) | carries);
  out.ax =
      static_cast<std::uint16_t>(alu.cut(adds ? ah + step : ah - step) << 8 | (sum.value & 0xf));
  out.dx = in.dx;
  return out;
}

// ---------------------------------------------------------------------------------------------
// Shifts and rotations, a step for each of the count, of which all bits count.

/// One step. Returns what falls out.
bool shift_once(FlagRule rule, const Alu8086& alu, std::uint32_t& value, bool carry) {
  const std::uint32_t top = 1u << (alu.bits() - 1);
  const bool left_out = alu.sign(value), right_out = (value & 1) != 0;
  const std::uint32_t right = value >> 1;
  switch (rule) {
    case FlagRule::rotate_left:
      return alu.rotate_left(value, left_out);
    case FlagRule::rotate_carry_left:
      return alu.rotate_left(value, carry);
    case FlagRule::shift_left:
      return alu.rotate_left(value, false);
    case FlagRule::rotate_right:
      value = right_out ? right | top : right;
      return right_out;
    case FlagRule::rotate_carry_right:
      value = carry ? right | top : right;
      return right_out;
    case FlagRule::shift_arithmetic:
      value = left_out ? right | top : right;
      return right_out;
    default:
      value = right;
      return right_out;
  }
}

MicrocodeResult shift(const DecodedInstruction& info, const MicrocodeInput& in) {
  const Alu8086 alu(8u * info.operand_bytes);
  const FlagRule rule = info.flag_rule;
  const unsigned count = shift_count(info, in.cl);
  std::uint32_t value = in.operand, before = value;
  bool carry = (in.flags & kCf) != 0;
  for (unsigned i = 0; i < count; ++i) {
    before = value;
    carry = shift_once(rule, alu, value, carry);
  }
  MicrocodeResult out;
  out.flags = in.flags;
  if (rule == FlagRule::set_bits) {
    if (count != 0) {
      value = alu.all_ones();
      out.flags = with_arithmetic(in.flags, alu.result_flags(value));
    }
  } else if (count != 0) {
    const bool rotates = rule >= FlagRule::rotate_left && rule <= FlagRule::rotate_carry_right;
    const std::uint32_t ends = (carry ? kCf : 0) | (alu.sign(before ^ value) ? kOf : 0);
    // A shift to the left shows the carry out of bit 3, as the sum with itself does.
    const bool half = rule == FlagRule::shift_left && (before & 8) != 0;
    const std::uint32_t others =
        rotates ? in.flags & (kSf | kZf | kAf | kPf) : alu.result_flags(value) | (half ? kAf : 0);
    out.flags = with_arithmetic(in.flags, ends | others);
  }
  out.operand = static_cast<std::uint16_t>(value);
  return out;
}

using Routine = MicrocodeResult (*)(const DecodedInstruction&, const MicrocodeInput&);

Routine routine_of(FlagRule rule) {
  switch (rule) {
    case FlagRule::mul:
    case FlagRule::imul:
      return multiply;
    case FlagRule::div:
      return divide;
    case FlagRule::idiv:
      return divide_signed;
    case FlagRule::aam:
      return adjust_after_multiplication;
    case FlagRule::aad:
      return adjust_before_division;
    case FlagRule::daa:
    case FlagRule::das:
      return adjust_packed;
    case FlagRule::aaa:
    case FlagRule::aas:
      return adjust_unpacked;
    case FlagRule::shift_left:
    case FlagRule::shift_right:
    case FlagRule::shift_arithmetic:
    case FlagRule::rotate_left:
    case FlagRule::rotate_right:
    case FlagRule::rotate_carry_left:
    case FlagRule::rotate_carry_right:
    case FlagRule::set_bits:
      return shift;
    default:
      return nullptr;
  }
}

}  // namespace

bool is_behind_repeat(const DecodedInstruction& info) {
  return std::any_of(info.bytes.begin(), info.bytes.begin() + info.prefix_bytes,
                     [](std::uint8_t byte) { return byte == 0xf2 || byte == 0xf3; });
}

bool is_microcoded(const DecodedInstruction& info) { return routine_of(info.flag_rule) != nullptr; }

MicrocodeResult run_microcode(const DecodedInstruction& info, const MicrocodeInput& input) {
  const Routine routine = routine_of(info.flag_rule);
  CITCAT_ASSERT(routine != nullptr);
  return routine(info, input);
}

}  // namespace citcat
