#pragma once
// Which instruction of the run a KT record is.

#include <array>
#include <cstdint>
#include <span>

#include "formats/kt/kt_note.h"

namespace citcat {

/// Whether these are the bytes of a string instruction after a repeat prefix (SDM vol. 2, REP): KT
/// has a record for each of its iterations.
/// `bits64`: in 64-bit mode, where REX may be before the opcode.
bool is_repeated_string(std::span<const std::uint8_t> code, bool bits64 = false);

/// Counts instructions record by record, a whole REP as one.
///
/// A repeated string instruction goes on where the same one follows at the same address. It is done
/// when what follows is the next instruction, or had nothing to do (no addresses); where anything
/// else follows, it was interrupted and is going to begin again. Only an interrupt at the very end
/// of a REP, and code that wraps at the end of its segment, look alike: a trace with notes tells
/// them apart, in others the count is derived by this rule alone.
class KtCounter {
 public:
  /// The next record is there, whatever came before.
  void set(const KtPlace& place) {
    place_ = place;
    told_ = true;
  }
  /// The place of the next instruction record, which must be handed over in order.
  KtPlace next(std::uint32_t eip, std::span<const std::uint8_t> code, unsigned addresses,
               bool bits64 = false) {
    if (told_) {
      told_ = false;
    } else if (!repeats_) {
      ++place_.instruction;
      place_.iteration = 0;
    } else {
      follow_repeat(eip, code);
    }
    repeats_ = addresses != 0 && is_repeated_string(code, bits64);
    if (repeats_) remember(eip, code);
    return place_;
  }
  /// The place of the last record; before there is one, the place that the first will have.
  const KtPlace& place() const { return place_; }
  /// The place of the next record, as far as it is known before reading it: a REP in progress is
  /// assumed to continue.
  KtPlace coming() const {
    KtPlace place = place_;
    if (told_) return place;
    if (repeats_) {
      ++place.iteration;
    } else {
      ++place.instruction;
      place.iteration = 0;
    }
    return place;
  }

 private:
  void follow_repeat(std::uint32_t eip, std::span<const std::uint8_t> code);
  void remember(std::uint32_t eip, std::span<const std::uint8_t> code);

  KtPlace place_;
  bool told_ = true;  ///< place_ is that of the next record
  bool repeats_ = false;
  std::uint8_t size_ = 0;
  std::uint32_t eip_ = 0;
  std::array<std::uint8_t, 15> code_{};
};

}  // namespace citcat
