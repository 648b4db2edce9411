#pragma once
// LOCK before a bit test of a register: #UD to a processor, executed by the engine.

#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

/// Of BT, BTS, BTR or BTC of a register after LOCK, as `bytes` begin with for a 386: how many
/// bytes its prefixes are. 0 where `bytes` begin with anything else.
std::size_t prefixes_of_locked_bit_test(std::span<const std::uint8_t> bytes, bool bits64 = false);

}  // namespace citcat
