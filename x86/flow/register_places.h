#pragma once
// The places of the registers that Zydis names as operands. Private to the room.

#include <Zydis/Zydis.h>

#include <optional>

#include "x86/flow/value_places.h"

namespace citcat::flow {

/// The places of a register of Zydis'; nothing for what holds no value.
std::optional<PlaceRange> places_of(ZydisRegister reg);

}  // namespace citcat::flow
