#pragma once
// Model-specific registers that hold addresses.

#include <algorithm>
#include <array>
#include <cstdint>

namespace citcat::monitor {

/// Whether processors with long mode refuse WRMSR of this value with #GP(0), because it is an
/// address that is not canonical (Intel SDM vol. 2, WRMSR; CSTAR: AMD APM vol. 2, 6.1.1).
inline bool is_refused_address(std::uint32_t msr, std::uint64_t value) {
  constexpr std::array<std::uint32_t, 7> kAddressMsrs = {
      0x175,      0x176,                   // SYSENTER_ESP, SYSENTER_EIP
      0xc0000082, 0xc0000083,              // LSTAR, CSTAR
      0xc0000100, 0xc0000101, 0xc0000102,  // the bases of FS and GS, and that of SWAPGS
  };
  constexpr unsigned kUnused = 16;
  const auto canonical =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(value << kUnused) >> kUnused);
  return canonical != value &&
         std::find(kAddressMsrs.begin(), kAddressMsrs.end(), msr) != kAddressMsrs.end();
}

}  // namespace citcat::monitor
