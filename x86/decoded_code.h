#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "events/machine/address.h"
#include "formats/memory/zeroed_array.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// Instructions as they were decoded last, by linear address: to be compared with memory each time.
class DecodedCode {
 public:
  struct Slot {
    LinearAddr linear;
    bool valid = false;
    CodeMode mode;
    DecodedInstruction info;

    /// Whether this is what `bytes`, all that is in its page, are at `at`.
    bool is(LinearAddr at, CodeMode in, std::span<const std::uint8_t> bytes) const {
      return valid && linear == at && mode == in && info.length <= bytes.size() &&
             std::memcmp(info.bytes.data(), bytes.data(), info.length) == 0;
    }
  };

  Slot& slot(LinearAddr linear) { return slots_[index(linear)]; }
  const Slot& slot(LinearAddr linear) const { return slots_[index(linear)]; }
  /// What is at `linear` is likely to be asked for soon: the table is larger than caches.
  void expect(LinearAddr linear) const { __builtin_prefetch(&slot(linear)); }

 private:
  std::size_t index(LinearAddr linear) const {
    return (linear.low32() ^ linear.low32() >> 13) & (slots_.size() - 1);
  }
  ZeroedArray<Slot> slots_{std::size_t{1} << 15};
};

}  // namespace citcat
