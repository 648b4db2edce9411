#include "replay/x86/flag_effects.h"

#include "events/cpu_state.h"
#include "replay/x86/opcode_set.h"

namespace citcat {
namespace {

constexpr std::uint32_t kCf = 0x001, kPf = 0x004, kAf = 0x010, kZf = 0x040, kSf = 0x080,
                        kOf = 0x800;

/// Shifts leave AF undefined, and OF unless by 1; CF too when all bits of a narrow operand went.
FlagEffect shift_effect(const DecodedInstruction& info, std::optional<unsigned> count) {
  const unsigned bits = 8u * info.operand_bytes;
  const bool keeps_sign = info.flag_rule == FlagRule::shift_arithmetic;
  const std::uint32_t carry = bits < 32 && !keeps_sign ? kCf : 0;
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

FlagEffect rule_effect(const DecodedInstruction& info, std::optional<unsigned> count) {
  switch (info.flag_rule) {
    case FlagRule::none:
      return {};
    case FlagRule::logic:
      return {kArithmeticFlags, kAf};
    case FlagRule::shift_left:
    case FlagRule::shift_right:
    case FlagRule::shift_arithmetic:
      return shift_effect(info, count);
    case FlagRule::rotate_left:
    case FlagRule::rotate_right:
    case FlagRule::rotate_carry_left:
    case FlagRule::rotate_carry_right:
      return rotate_effect(count);
    case FlagRule::double_shift:
      return double_shift_effect(info, count);
    case FlagRule::mul:
    case FlagRule::imul:
    case FlagRule::imul_two_operand:
      return {kArithmeticFlags, kSf | kZf | kAf | kPf};
    case FlagRule::div:
    case FlagRule::idiv:
      return {kArithmeticFlags, kArithmeticFlags};
    case FlagRule::daa:
    case FlagRule::das:
      return {kArithmeticFlags, kOf};
    case FlagRule::aaa:
    case FlagRule::aas:
      return {kArithmeticFlags, kOf | kSf | kZf | kPf};
    case FlagRule::aam:
    case FlagRule::aad:
      return {kArithmeticFlags, kOf | kAf | kCf};
    case FlagRule::bit_scan:
      return {kArithmeticFlags, kArithmeticFlags & ~kZf};
    case FlagRule::bit_test:
      return {kArithmeticFlags & ~kZf, kOf | kSf | kAf | kPf};
  }
  return {};
}

/// Flags that instructions without a rule define.
std::uint32_t defined_one_byte(const DecodedInstruction& info) {
  constexpr OpcodeSet kCarryOnly = {0xf5, 0xf8, 0xf9};                            // CMC, CLC, STC
  constexpr OpcodeSet kAll = {{0x80, 0x83}, 0xa6, 0xa7, 0xae, 0xaf, 0x9d, 0xcf};  // and POPF, IRET
  const unsigned opcode = info.opcode;
  if (opcode < 0x40 && (opcode & 7) < 6) return kArithmeticFlags;
  if (opcode >= 0x40 && opcode < 0x50) return kArithmeticFlags & ~kCf;  // INC, DEC
  if (kAll.has(opcode)) return kArithmeticFlags;
  if (kCarryOnly.has(opcode)) return kCf;
  if (opcode == 0x9e) return kArithmeticFlags & ~kOf;                                       // SAHF
  if (opcode == 0x63) return kZf;                                                           // ARPL
  if (opcode == 0xf6 || opcode == 0xf7) return info.reg_field == 3 ? kArithmeticFlags : 0;  // NEG
  if (opcode == 0xfe || opcode == 0xff) return info.reg_field < 2 ? kArithmeticFlags & ~kCf : 0;
  return 0;
}

std::uint32_t defined_two_byte(const DecodedInstruction& info) {
  constexpr OpcodeSet kAll = {0x2e, 0x2f, 0xb0, 0xb1, 0xc0, 0xc1};  // (U)COMIS*, CMPXCHG, XADD
  constexpr OpcodeSet kZeroOnly = {0x02, 0x03, 0xc7};               // LAR, LSL, CMPXCHG8B
  if (kAll.has(info.opcode)) return kArithmeticFlags;
  if (kZeroOnly.has(info.opcode)) return kZf;
  if (info.opcode == 0x00 && (info.reg_field == 4 || info.reg_field == 5))
    return kZf;  // VERR, VERW
  return 0;
}

}  // namespace

bool shifts_by_cl(const DecodedInstruction& info) {
  if (info.opcode_map == 1) return info.opcode == 0xa5 || info.opcode == 0xad;
  return info.opcode_map == 0 && (info.opcode == 0xd2 || info.opcode == 0xd3);
}

FlagEffect flag_effect(const DecodedInstruction& info, std::optional<unsigned> count) {
  if (info.flag_rule != FlagRule::none) return rule_effect(info, count);
  if (info.opcode_map == 0) return {defined_one_byte(info), 0};
  if (info.opcode_map == 1) return {defined_two_byte(info), 0};
  return {};
}

FlagEffect flag_effect_of(const DecodedInstruction& info, std::uint32_t ecx) {
  const bool by_one = info.opcode_map == 0 && (info.opcode == 0xd0 || info.opcode == 0xd1);
  std::optional<unsigned> count = by_one ? 1 : info.immediate & 31;
  if (shifts_by_cl(info)) {
    const bool changed = info.register_form && info.rm_field == kEcx;
    count = changed ? std::nullopt : std::optional(ecx & 31);
  }
  return flag_effect(info, count);
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
