#pragma once
// Instructions by their bytes, wherever they lie.

#include <cstdint>
#include <span>

#include "formats/memory/zeroed_array.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// Decodes as decode_instruction() does and remembers what it found: of the instructions of a
/// kernel or a program two thirds are, byte for byte, like one before, and to decode costs some
/// 950 of the host's instructions. Not for several threads.
class DecodeCache {
 public:
  explicit DecodeCache(CpuModel model) : model_(model) {}

  /// What `bytes` begin with (decode_instruction()). Valid until the next call.
  const DecodedInstruction& decode(std::span<const std::uint8_t> bytes, CodeMode mode);
  /// How often it did not know them.
  std::uint64_t decoded() const { return decoded_; }

 private:
  struct Entry {
    CodeMode mode;
    DecodedInstruction info;  ///< of length 0 where the entry is free
  };

  Entry& entry(std::span<const std::uint8_t> bytes, std::size_t length);
  const DecodedInstruction& decode_anew(std::span<const std::uint8_t> bytes, CodeMode mode) {
    ++decoded_;
    return other_ = decode_instruction(bytes, mode, model_);
  }

  CpuModel model_;
  std::uint64_t decoded_ = 0;
  /// How long the last instruction was that began with these two bytes, the second in the upper
  /// half: a guess, which the entry's own bytes confirm. 0: none did.
  ZeroedArray<std::uint8_t> lengths_{std::size_t{1} << 16};
  static constexpr unsigned kIndexBits = 13;
  ZeroedArray<Entry> entries_{std::size_t{1} << kIndexBits};
  DecodedInstruction other_;  ///< the last one that is not kept
};

}  // namespace citcat
