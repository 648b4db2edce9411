#pragma once
// Which flags an instruction leaves undefined. A bus shows such flags nevertheless, in images of
// EFLAGS that PUSHF and interrupts store, with values that differ from processor to processor.

#include <array>
#include <cstdint>
#include <optional>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

struct FlagEffect {
  std::uint32_t written = 0;    ///< given a value, defined or not
  std::uint32_t undefined = 0;  ///< of these, the ones whose value no manual defines
};

/// Both, one after the other.
constexpr FlagEffect operator+(FlagEffect first, FlagEffect then) {
  return {first.written | then.written, (first.undefined & ~then.written) | then.undefined};
}

/// What `info` does to the arithmetic flags of a 386 or later (Intel SDM vol. 1, appendix A, and
/// vol. 2 for each instruction). `count` is that of a shift or rotation, modulo 32, nullopt when
/// it is not known any more: then only what any count may leave undefined is said to be so.
/// Instructions that load EFLAGS write all.
FlagEffect flag_effect(const DecodedInstruction& info, std::optional<unsigned> count);

/// True for shifts and rotations by CL: flag_effect() wants the count.
bool shifts_by_cl(const DecodedInstruction& info);
/// What `info`, which has completed, did; `ecx` as it is now.
FlagEffect flag_effect_of(const DecodedInstruction& info, std::uint32_t ecx);

/// Follows a run: which arithmetic flags hold values that no manual defines, and which images of
/// EFLAGS have been stored with such.
class UndefinedFlagTracker {
 public:
  /// `info` has completed; `ecx` as it is now.
  void completed(const DecodedInstruction& info, std::uint32_t ecx) {
    if (undefined_ == 0 && info.flag_rule == FlagRule::none) return;
    completed(flag_effect_of(info, ecx));
  }
  /// Instructions with this effect have completed.
  void completed(FlagEffect effect) {
    undefined_ = (undefined_ & ~effect.written) | effect.undefined;
  }
  std::uint32_t undefined() const { return undefined_; }

  /// Bits of a store of `value` that no manual defines, 0 when it is no image of EFLAGS. `eflags`:
  /// asked for the register's present value, only where the store may be an image of it.
  template <typename Eflags>
  std::uint32_t undefined_in_store(std::uint32_t value, Eflags eflags) {
    if (!looks_like_eflags(value)) return 0;
    if (undefined_ != 0 && ((value ^ eflags()) & ~kNotInImages) == 0) {
      remember(value);
      return undefined_;
    }
    return remembered(value);
  }

  /// False where undefined_in_store() gives 0 whatever the arithmetic flags, IF and DF are beside
  /// the other bits of `eflags`.
  bool may_be_undefined(std::uint32_t value, std::uint32_t eflags) const {
    constexpr std::uint32_t kChanging = kArithmeticFlags | 0x600;
    if (!looks_like_eflags(value)) return false;
    return ((value ^ eflags) & ~(kChanging | kNotInImages)) == 0 || remembered(value) != 0;
  }

  /// An interrupt or exception is about to store an image of `eflags`.
  void image_follows(std::uint32_t eflags) {
    if (undefined_ != 0) remember(eflags);
  }

  /// EFLAGS was loaded from memory whose images have not been confirmed: what was undefined in
  /// them may be in the register again.
  void reloaded() { undefined_ |= images_mask_; }

 private:
  /// RF and VM: PUSHF stores them clear, interrupts store RF as a property of the interruption.
  static constexpr std::uint32_t kNotInImages = 0x30000;
  struct Image {
    std::uint32_t value = 0, mask = 0;
  };

  /// Bit 1 set; bits 3, 5, 15 and those above ID clear (Intel SDM vol. 1, 3.4.3). Processors before
  /// the 286 have bits 12 to 15 set (8086 Family User's Manual, 2.3).
  static bool looks_like_eflags(std::uint32_t value) {
    return (value & 0xffc0802a) == 2 || (value & 0xfffff02a) == 0xf002;
  }
  void remember(std::uint32_t value);
  std::uint32_t remembered(std::uint32_t value) const;

  std::uint32_t undefined_ = 0;
  std::uint32_t images_mask_ = 0;  ///< undefined in any image so far
  /// Programs keep images in registers and store them again (saved interrupt flags): the last few.
  std::array<Image, 64> images_{};
  std::size_t next_image_ = 0;
};

}  // namespace citcat
