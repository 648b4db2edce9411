#pragma once
// The x87 unit: the pointers, environments and images that a processor shows where the emulator
// keeps less.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "monitor/processor/observation.h"
#include "monitor/state/fpu_image.h"
#include "monitor/state/fpu_pointers.h"
#include "monitor/state/tag_word.h"

namespace citcat::monitor {

class X87Unit {
 public:
  explicit X87Unit(Observation& seen)
      : cpu_(seen.cpu), flight_(seen.flight), recording_(seen.recording), linear_(seen.linear) {}

  /// A recording begins with this image of FXSAVE, which has pointers or not.
  void begin(std::span<const std::uint8_t, kSlotBytes> head, const std::uint8_t* pointers);
  /// An instruction begins that moves no environment.
  void clear_environment() { environment_.reset(); }
  /// One begins that sets the pointers.
  void begin(const Insn& insn, std::uint64_t offset) {
    pointers_.begin(insn.what.fpu_opcode, offset, cpu_.registers.selector(1));
  }
  /// An instruction of the unit has ended, or EMMS. One that goes by which registers are in use was
  /// executed with the emulator's.
  void finish(const Insn& insn);
  /// The unit is as after FNINIT.
  void initialise();
  void mmx_executed() { tags_.mmx_executed(); }
  /// An MMX instruction faulted at its operand.
  void mmx_faulted() { tags_.mmx_faulted(); }

  /// An instruction that moves data or an environment has made an access.
  void note_access(const Insn& insn, std::uint64_t linear);
  /// Whether the access is of the environment, and not of the registers that FNSAVE and FRSTOR move
  /// after it.
  bool is_environment(const Insn& insn, std::uint64_t linear);
  /// A processor reads the whole environment; the emulator begins with its first word and passes
  /// over the pointers.
  void read_environment(const Insn& insn, std::uint64_t linear);
  /// FNSTENV and FNSAVE store other pointers than the emulator, and ones where a field has more
  /// bytes than it needs.
  std::span<const std::uint8_t> as_stored(const Insn& insn, std::uint64_t linear,
                                          std::span<const std::uint8_t> value);

  // FXSAVE and FXRSTOR. The emulator reports the fields it keeps. A processor moves the whole
  // image, with the fields that the emulator has not: they are shown with what is in memory.
  /// Shows the image at the operand of the instruction in flight.
  void show_image(const Insn& insn, bool store);
  /// The unit has taken pointers and tags from there.
  void load_image(const Insn& insn);
  /// A block of the image as a processor stores it. The emulator leaves the bytes after each 80-bit
  /// register alone, where a processor stores zeros, and does not store the pointers.
  std::array<std::uint8_t, kSlotBytes> stored_block(const Insn& insn, unsigned offset,
                                                    const std::uint8_t* emulated);

 private:
  EnvironmentForm environment_form(const Insn& insn);
  void load_environment(const Insn& insn);

  ObservedProcessor& cpu_;
  Flight& flight_;
  Recording& recording_;
  LinearMemory& linear_;
  FpuPointers pointers_;
  TagWord tags_;
  std::optional<std::uint64_t> environment_;  ///< linear address of the one that is moved
  std::array<std::uint8_t, 4> field_{};       ///< of it, as a processor stores it
};

}  // namespace citcat::monitor
