#pragma once
// Where a value may be inside the processor, each with a number: bytes of registers and single
// flags.

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace citcat {

/// Places from `first` on. What memory has none of: registers only.
struct PlaceRange {
  std::uint16_t first = 0;
  std::uint16_t count = 0;
  bool operator==(const PlaceRange&) const = default;
};

namespace place {
inline constexpr unsigned kGprs = 0;       ///< 16 registers of 8 bytes
inline constexpr unsigned kVectors = 128;  ///< XMM0 to XMM15, of 16 bytes
inline constexpr unsigned kStack = 384;    ///< ST(0) to ST(7), of 10 bytes; MMX registers in them
inline constexpr unsigned kStackBytes = 10;
inline constexpr unsigned kFlags = 464;      ///< 32 bits of EFLAGS
inline constexpr unsigned kSegments = 496;   ///< SegmentRegister: selector and what it stands for
inline constexpr unsigned kFpuStatus = 502;  ///< two bytes: exceptions; condition codes and TOP
inline constexpr unsigned kFpuControl = 504;
inline constexpr unsigned kFpuTags = 505;
inline constexpr unsigned kMxcsr = 506;
inline constexpr unsigned kControl = 507;  ///< CR0, CR2, CR3, CR4, CR8
inline constexpr unsigned kDebug = 512;    ///< all debug registers
inline constexpr unsigned kTables = 513;   ///< GDTR, IDTR, LDTR, TR
inline constexpr unsigned kMsrs = 517;     ///< all model-specific registers
inline constexpr unsigned kXcr0 = 518;
inline constexpr unsigned kCount = 519;

constexpr PlaceRange gpr(unsigned number, unsigned first, unsigned count) {
  return {static_cast<std::uint16_t>(kGprs + 8 * number + first),
          static_cast<std::uint16_t>(count)};
}
constexpr PlaceRange vector(unsigned number, unsigned first = 0, unsigned count = 16) {
  return {static_cast<std::uint16_t>(kVectors + 16 * number + first),
          static_cast<std::uint16_t>(count)};
}
constexpr PlaceRange stack(unsigned number, unsigned count = kStackBytes) {
  return {static_cast<std::uint16_t>(kStack + kStackBytes * number),
          static_cast<std::uint16_t>(count)};
}
constexpr PlaceRange one(unsigned place) { return {static_cast<std::uint16_t>(place), 1}; }
constexpr PlaceRange flag(unsigned bit) { return one(kFlags + bit); }
constexpr PlaceRange segment(unsigned number) { return one(kSegments + number); }
}  // namespace place

using PlaceSet = std::bitset<place::kCount>;

/// How long general registers are, for their names: 16, 32 or 64 bits.
enum class NameWidth : std::uint8_t { bits16, bits32, bits64 };

/// The places of a register or flag by its name: al, ax, eax, rax, r8 to r15 with d, w, b, xmm0,
/// st0, mm0, flags and eflags, cf, pf, af, zf, sf, tf, if, df, of, es to gs, cr0, mxcsr, ...
std::optional<PlaceRange> places_named(std::string_view name);
/// What these places are called, the fewest names that hold them all: "ax", "ah", "zf", "xmm1".
std::vector<std::string> place_names(const PlaceSet& places, NameWidth width);

}  // namespace citcat
