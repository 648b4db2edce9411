#include "monitor/state/data_breakpoints.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kBreakpoints = 4;
constexpr unsigned kBits = 0xf;  // B0 to B3
constexpr std::uint64_t kStep = 1u << 14;
constexpr unsigned kOnWrite = 1, kOnReadOrWrite = 3;

bool is_enabled(std::uint64_t control, unsigned n) { return (control >> (2 * n) & 3) != 0; }
unsigned condition(std::uint64_t control, unsigned n) { return control >> (16 + 4 * n) & 3; }
bool is_of_data(unsigned condition) { return condition == kOnWrite || condition == kOnReadOrWrite; }

}  // namespace

void DataBreakpoints::load(const LoggedState& state, bool clears) {
  clears_ = clears;
  control_ = state.dr[7];
  bits_ = state.dr[6] & kBits;
  watch_data_ = false;
  for (unsigned n = 0; n < kBreakpoints; ++n) {
    at_[n] = state.dr[n];
    watch_data_ |= is_enabled(control_, n) && is_of_data(condition(control_, n));
  }
}

/// The bits of others whose condition is met are set with those that are enabled (Intel SDM vol. 3,
/// 17.2.3).
void DataBreakpoints::note(std::uint64_t linear, unsigned size, bool store) {
  constexpr unsigned kLength[4] = {1, 2, 8, 4};
  unsigned met = 0;
  bool enabled = false;
  for (unsigned n = 0; n < kBreakpoints; ++n) {
    const unsigned kind = condition(control_, n);
    if (kind != kOnReadOrWrite && !(kind == kOnWrite && store)) continue;
    const unsigned bytes = kLength[control_ >> (18 + 4 * n) & 3];
    const std::uint64_t first = at_[n] & ~std::uint64_t{bytes - 1};
    if (linear - first >= bytes && first - linear >= size) continue;
    met |= 1u << n;
    enabled |= is_enabled(control_, n);
  }
  if (enabled) met_ |= met;
}

void DataBreakpoints::raised(std::uint64_t dr6, bool stepping) {
  // A code breakpoint comes alone, before its instruction.
  if (clears_) bits_ = 0;
  bits_ |= met_ != 0 || (stepping && (dr6 & kStep) != 0) ? met_ : dr6 & kBits;
  met_ = 0;
}

}  // namespace citcat::monitor
