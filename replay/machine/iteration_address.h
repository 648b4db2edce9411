#pragma once
// The addresses of further iterations of a repeated string instruction that are reported together.

#include <cstdint>

#include "events/machine/address.h"

namespace citcat {

/// The address that is `a` in one iteration, `iterations` iterations later. `step`: bytes from one
/// to the next, those downwards negative numbers of 32 bits. Addresses of 32 bits wrap; iterations
/// of 64-bit mode are reported together only within one page, where none does.
constexpr LinearAddr address_after(LinearAddr a, std::uint32_t iterations, std::uint32_t step) {
  if (a.value <= 0xffffffff) return a.plus32(iterations * step);
  const std::int64_t distance = std::int64_t{static_cast<std::int32_t>(step)} * iterations;
  return LinearAddr{a.value + static_cast<std::uint64_t>(distance)};
}

}  // namespace citcat
