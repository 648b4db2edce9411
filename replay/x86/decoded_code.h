#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "formats/io/zeroed_array.h"
#include "replay/x86/decoded_instruction.h"

namespace citcat {

/// Instructions as they were decoded last, by linear address: to be compared with memory each time.
class DecodedCode {
 public:
  struct Slot {
    std::uint32_t linear = 0;
    bool valid = false;
    CodeMode mode;
    DecodedInstruction info;

    /// Whether this is what `bytes`, all that is in its page, are at `at`.
    bool is(std::uint32_t at, CodeMode in, std::span<const std::uint8_t> bytes) const {
      return valid && linear == at && mode == in && info.length <= bytes.size() &&
             std::memcmp(info.bytes.data(), bytes.data(), info.length) == 0;
    }
  };

  Slot& slot(std::uint32_t linear) { return slots_[index(linear)]; }
  const Slot& slot(std::uint32_t linear) const { return slots_[index(linear)]; }
  /// What is at `linear` is likely to be asked for soon: the table is larger than caches.
  void expect(std::uint32_t linear) const { __builtin_prefetch(&slot(linear)); }

 private:
  std::size_t index(std::uint32_t linear) const {
    return (linear ^ linear >> 13) & (slots_.size() - 1);
  }
  ZeroedArray<Slot> slots_{std::size_t{1} << 15};
};

}  // namespace citcat
