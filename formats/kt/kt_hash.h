#pragma once
// Hash and size of the KT model's tables, which do not resolve collisions: a later key may
// overwrite an earlier one.

#include <cstddef>
#include <cstdint>

namespace citcat {

inline constexpr unsigned kKtTableBits = 16;
inline constexpr std::size_t kKtTableSlots = std::size_t{1} << kKtTableBits;

inline std::uint32_t kt_hash(std::uint64_t key) {
  return static_cast<std::uint32_t>((key * 0x9e3779b97f4a7c15U) >> (64 - kKtTableBits));
}

}  // namespace citcat
