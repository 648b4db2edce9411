#pragma once
// LOCK before a bit test of a register: #UD to a processor, executed by the engine.

#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// The number of prefix bytes if `bytes` begin with BT, BTS, BTR or BTC of a register after LOCK,
/// as a 386 decodes them; 0 if they begin with anything else.
std::size_t prefixes_of_locked_bit_test(std::span<const std::uint8_t> bytes, bool bits64 = false);

}  // namespace citcat
