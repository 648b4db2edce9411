#pragma once
// How the tools for several processors name places in the code.

#include <string>

#include "events/machine/address.h"
#include "events/names/symbols.h"

namespace citcat::tools {

/// "put+0x1c" where there is a name for the address, else the address.
std::string code_name(const Symbols& symbols, LinearAddr at);
/// The address, and after it the name where there is one.
std::string code_place(const Symbols& symbols, LinearAddr at);

}  // namespace citcat::tools
