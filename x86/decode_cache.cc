#include "x86/decode_cache.h"

#include <algorithm>
#include <cstring>

namespace citcat {

DecodeCache::Entry& DecodeCache::entry(std::span<const std::uint8_t> bytes, std::size_t length) {
  // The first eight tell most instructions apart; the others share an entry.
  std::uint64_t key = 0;
  std::memcpy(&key, bytes.data(), std::min(length, sizeof key));
  constexpr std::uint64_t kFraction =
      0x9e3779b97f4a7c15;  // 2^64 / golden ratio: spreads neighbours
  return entries_[key * kFraction >> (64 - kIndexBits)];
}

const DecodedInstruction& DecodeCache::decode(std::span<const std::uint8_t> bytes, CodeMode mode) {
  if (bytes.size() < 2) return decode_anew(bytes, mode);
  std::uint8_t& guess = lengths_[bytes[0] | std::size_t{bytes[1]} << 8];
  if (guess != 0 && guess <= bytes.size()) {
    // An instruction's bytes say where it ends: those after it change nothing.
    const Entry& known = entry(bytes, guess);
    if (known.info.length == guess && known.mode == mode &&
        std::equal(bytes.begin(), bytes.begin() + guess, known.info.bytes.begin())) {
      return known.info;
    }
  }
  if (decode_anew(bytes, mode).state != DecodeState::ok) return other_;
  guess = other_.length;
  Entry& kept = entry(bytes, guess);
  kept = {mode, other_};
  return kept.info;
}

}  // namespace citcat
