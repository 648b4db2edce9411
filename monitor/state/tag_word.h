#pragma once
// Which x87 registers are in use, where the emulator has it wrong. An MMX instruction puts all of
// them in use and the top of the stack at 0 when it is executed (Intel SDM vol. 1, 9.5.1); the
// emulator does so before the instruction's operand is accessed, though that may fault.

#include <cstdint>
#include <optional>
#include <span>

namespace citcat::monitor {

class TagWord {
 public:
  /// FNINIT and FNSAVE: no register is in use.
  void clear() { set({}); }
  /// EMMS: the same, and the top of the stack stays where it is.
  void empty();
  /// FXRSTOR: the first five bytes of the image (Intel SDM vol. 1, table 10-2).
  void load_image(std::span<const std::uint8_t> image);
  /// An x87 instruction, or one that loads its environment: what it leaves is not followed.
  void forget();
  void mmx_executed() { set(kMmx); }
  /// An MMX instruction faulted at its operand.
  void mmx_faulted();

  /// Whether the emulator's are not the processor's.
  bool is_other() const { return is_other_; }
  /// Puts the processor's into the first block of an image. False if they are not known.
  bool store(std::span<std::uint8_t> block) const;

 private:
  struct State {
    std::uint8_t in_use = 0;  ///< a bit for each physical register
    std::uint8_t top = 0;
    bool operator==(const State&) const = default;
  };
  static constexpr State kMmx{0xff, 0};
  void set(State state);

  std::optional<State> state_;
  bool is_other_ = false;
};

}  // namespace citcat::monitor
