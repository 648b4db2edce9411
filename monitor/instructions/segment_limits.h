#pragma once
// Whether the segment registers allow an access, which the emulator does not check: limit, type,
// and whether there is a segment at all (Intel SDM vol. 3, 5.3 to 5.5).

#include <array>
#include <cstdint>

#include "monitor/log/logged_state.h"

namespace citcat::monitor {

enum class SegmentMode : std::uint8_t { real, virtual8086, protected_mode };

class SegmentLimits {
 public:
  static constexpr unsigned kSegments = 6;
  static constexpr std::uint8_t kEvery = (1u << kSegments) - 1, kCode = 1u << 1;

  /// Something has loaded these, a bit for each in encoding order: ES CS SS DS FS GS.
  void forget(std::uint8_t segments) { unknown_ |= segments; }
  /// The mode has changed.
  void forget_all();
  /// A descriptor table has: what a selector stood for it may stand for no more.
  void forget_selectors() { flat_count_ = 0; }
  bool is_unknown() const { return unknown_ != 0; }
  /// Learns what it has forgotten. `selector(n)` is cheap and is asked first; `state()` is not, and
  /// is asked where a selector does not say enough.
  template <typename Selector, typename State>
  void learn(SegmentMode mode, const Selector& selector, const State& state) {
    bool all_known = true;
    for (unsigned n = 0; n < kSegments; ++n)
      if ((unknown_ >> n & 1) != 0) all_known &= take_selector(n, mode, selector(n));
    if (!all_known) take_state(mode, state());
    unknown_ = 0;
    find_limited();
  }
  /// Nothing that is accessed through these segments can be refused. -1: no segment.
  bool allows_all(int load, int store) const { return !is_limited(load) && !is_limited(store); }
  /// The same of a set of segments, a bit for each.
  bool allow(std::uint8_t segments) const { return (limited_ & segments) == 0; }
  /// Whether a processor makes this access of `size` bytes at a linear address.
  bool allows(unsigned segment, std::uint32_t linear, std::uint32_t size, bool store) const;

 private:
  struct Segment {
    std::uint32_t base = 0, first = 0, last = 0;  ///< offsets that may be accessed
    bool readable = false, writable = false;
    bool is_flat() const { return readable && writable && first == 0 && last == 0xffffffff; }
  };

  bool is_limited(int segment) const { return segment >= 0 && (limited_ >> segment & 1) != 0; }
  bool take_selector(unsigned segment, SegmentMode mode, std::uint16_t selector);
  void take_state(SegmentMode mode, const LoggedState& state);
  void find_limited();
  static Segment described(const LoggedSegment& segment, SegmentMode mode);

  std::array<Segment, kSegments> segments_{};
  std::uint8_t unknown_ = kEvery;
  std::uint8_t limited_ = 0;  ///< those that are not flat
  bool seen_ = false;         ///< all of them, in the present mode
  /// Selectors of protected mode that were seen to name a flat segment. One that names another
  /// since is not looked at: an access that is refused then is missed, none is refused wrongly.
  std::array<std::uint16_t, 8> flat_{};
  unsigned flat_count_ = 0;
};

}  // namespace citcat::monitor
