#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace citcat::view {

/// `plain` in the form of zlib (RFC 1950), as small as libdeflate makes it.
std::vector<std::uint8_t> deflated(std::span<const std::uint8_t> plain);

/// Bytes as text (RFC 4648, chapter 4), in one line.
std::string base64(std::span<const std::uint8_t> bytes);

}  // namespace citcat::view
