#include "x86/flag_effects.h"

#include "events/machine/cpu_state.h"

namespace citcat {
namespace {

/// Shifts leave AF undefined, and OF unless by 1; CF too when all bits of a narrow operand went.
FlagEffect shift_effect(const DecodedInstruction& info, std::optional<unsigned> count) {
  const unsigned bits = 8u * info.operand_bytes;
  const bool keeps_sign = info.flag_rule == FlagRule::shift_arithmetic;
  const std::uint32_t carry = bits < 32 && !keeps_sign ? kCf : 0u;
  if (!count) return {0, kAf | kOf | carry};
  if (*count == 0) return {};
  std::uint32_t undefined = kAf;
  if (*count != 1) undefined |= kOf;
  if (*count >= bits) undefined |= carry;
  return {kArithmeticFlags, undefined};
}

FlagEffect rotate_effect(std::optional<unsigned> count) {
  if (!count) return {0, kOf};
  if (*count == 0) return {};
  return {kCf | kOf, *count == 1 ? 0 : kOf};
}

FlagEffect double_shift_effect(const DecodedInstruction& info, std::optional<unsigned> count) {
  const unsigned bits = 8u * info.operand_bytes;
  if (!count) return {0, bits < 32 ? kArithmeticFlags : kAf | kOf};
  if (*count == 0) return {};
  if (*count > bits) return {kArithmeticFlags, kArithmeticFlags};
  return {kArithmeticFlags, *count == 1 ? kAf : kAf | kOf};
}

}  // namespace

bool shifts_by_cl(const DecodedInstruction& info) {
  return info.row != nullptr && info.row->flags.rule != FlagRule::none &&
         (info.row->operands[1] == OperandForm::CL || info.row->operands[2] == OperandForm::CL);
}

FlagEffect flag_effect(const DecodedInstruction& info, std::optional<unsigned> count) {
  if (info.row == nullptr) return {};
  const FlagFacts& facts = info.row->flags;
  switch (facts.rule) {
    case FlagRule::shift_left:
    case FlagRule::shift_right:
    case FlagRule::shift_arithmetic:
      if (info.flag_rule == FlagRule::set_bits) return {};  // as the result tells
      return shift_effect(info, count);
    case FlagRule::rotate_left:
    case FlagRule::rotate_right:
    case FlagRule::rotate_carry_left:
    case FlagRule::rotate_carry_right:
      return rotate_effect(count);
    case FlagRule::double_shift:
      return double_shift_effect(info, count);
    default:
      return {facts.written, facts.undefined};
  }
}

FlagEffect flag_effect_of(const DecodedInstruction& info, std::uint32_t ecx) {
  const bool changed = shifts_by_cl(info) && info.register_form && info.rm_field == kEcx;
  if (changed) return flag_effect(info, std::nullopt);
  const unsigned count = shift_count(info, static_cast<std::uint8_t>(ecx));
  return flag_effect(info, count & shift_count_bits(info));
}

void UndefinedFlagTracker::remember(std::uint32_t value) {
  images_mask_ |= undefined_;
  images_[next_image_++ % images_.size()] = {value & ~kNotInImages, undefined_};
}

std::uint32_t UndefinedFlagTracker::remembered(std::uint32_t value) const {
  if (images_mask_ == 0) return 0;
  std::uint32_t mask = 0;
  for (const Image& image : images_)
    if (image.value == (value & ~kNotInImages)) mask |= image.mask;
  return mask;
}

}  // namespace citcat
