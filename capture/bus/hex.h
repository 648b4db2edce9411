#pragma once

#include <cstdint>
#include <string>

namespace citcat {

/// `value` in at least `digits` lower-case hexadecimal digits with an h, as the manuals write it:
/// hex(0xfc78, 5) is "0fc78h".
inline std::string hex(std::uint64_t value, int digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; value != 0 || i < digits; ++i, value >>= 4)
    text.insert(0, 1, kDigits[value & 15]);
  return text + "h";
}

}  // namespace citcat
