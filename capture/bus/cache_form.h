#pragma once
// Kinds of caches as the command line and the CSV form name them.

#include <optional>
#include <string_view>

#include "events/recording.h"

namespace citcat {

/// "none", "write-through" or "write-back".
std::string_view cache_form_name(CacheForm form);
/// The form of that name, if there is one.
std::optional<CacheForm> parse_cache_form(std::string_view name);

}  // namespace citcat
