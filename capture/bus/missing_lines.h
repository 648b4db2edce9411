#pragma once
// The consequences of an address line that was not captured.

namespace citcat {

inline constexpr const char* kAddressBitMissing = "addresses are known only without this bit";

}  // namespace citcat
