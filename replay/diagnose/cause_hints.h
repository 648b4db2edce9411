#pragma once
// Hints about memory, as causes propose them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "events/hint.h"

namespace citcat {

/// `byte` held `value` before the run; `transaction` showed it otherwise.
Hint memory_hint(PhysAddr byte, std::uint8_t value, std::uint64_t transaction);
/// About the captured write `t`: it was of `data` to `address`.
Hint write_hint(Hint::Kind kind, const BusTransaction& t, PhysAddr address,
                std::vector<std::uint8_t> data);
/// About the external write `w`: it was of `data`.
Hint external_hint(Hint::Kind kind, const ExternalWrite& w, std::vector<std::uint8_t> data);

/// Two digits a byte.
std::string hex_text(std::span<const std::uint8_t> bytes);

}  // namespace citcat
