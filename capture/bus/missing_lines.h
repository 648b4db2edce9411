#pragma once
// What it costs that an address line was not captured.

namespace citcat {

inline constexpr const char* kAddressBitMissing = "addresses are known only without this bit";

}  // namespace citcat
