#pragma once
// If an instruction in the middle of a block turns out to access a device, the emulator gives it up
// and begins it again, sometimes more than once: what was shown by then is on the bus already.

#include <algorithm>
#include <cstdint>

#include "monitor/instructions/insn_class.h"

namespace citcat::monitor {

class Attempt {
 public:
  static constexpr std::uint64_t kNothing = std::uint64_t{1} << 63;  ///< no address: not canonical

  /// An instruction or an iteration begins, or begins again.
  void begin(bool again) {
    shown_before_ = again ? std::max(shown_, shown_before_) : 0;
    shown_ = 0;
    if (!again) first_read_ = kNothing;
  }
  /// Whether an instruction reads once more what it read first, before it has stored anything:
  /// begun again where the store goes to a device. The emulator does not say that it begins
  /// (QEMU 7.2, accel/tcg/translate-all.c, cpu_io_recompile(): CF_MEMI_ONLY).
  bool is_begun_anew(InsnKind kind, bool store, std::uint64_t linear) {
    const bool may = kind == InsnKind::plain || kind == InsnKind::movs;
    const bool again = may && !store && first_read_ == linear;
    if (store) {
      first_read_ = kNothing;
    } else if (shown_ == 0) {
      first_read_ = linear;
    }
    return again;
  }
  bool may_begin_anew(std::uint64_t linear) const { return first_read_ == linear; }
  /// An access is about to be shown: whether it has been, in an attempt before.
  bool was_shown() { return shown_++ < shown_before_; }
  bool repeats() const { return shown_before_ != 0; }
  // An access has been made of which nothing is seen.
  void note_load(std::uint64_t linear) {
    if (shown_++ == 0) first_read_ = linear;
  }
  void note_store() {
    first_read_ = kNothing;
    ++shown_;
  }
  /// The same of several at once, after those that are noted already. `first_read`: the address of
  /// the first one; `stores`: one of them is a store.
  void note_all(unsigned accesses, std::uint64_t first_read, bool stores) {
    if (stores)
      first_read_ = kNothing;
    else if (shown_ == 0)
      first_read_ = first_read;
    shown_ += accesses;
  }

 private:
  unsigned shown_ = 0;                   ///< accesses since the attempt or the iteration began
  unsigned shown_before_ = 0;            ///< accesses that earlier attempts have shown
  std::uint64_t first_read_ = kNothing;  ///< address of the first access, if a read, until a store
};

}  // namespace citcat::monitor
