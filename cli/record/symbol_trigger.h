#pragma once
// "symbol:NAME" as a place where `record` starts or stops: the monitor knows only addresses.

#include <string>
#include <vector>

#include "events/names/symbol_module.h"

namespace citcat {

bool is_symbol_trigger(const std::string& trigger);

/// "symbol:NAME" as "address:HEX", any other trigger as it is. Throws UsageError, beginning with
/// `option`, for a name that none of the modules has (with what was probably meant), that is
/// for several addresses, or whose address is beyond what the monitor watches.
std::string with_address(const std::string& option, const std::string& trigger,
                         const std::vector<SymbolModule>& modules);

}  // namespace citcat
