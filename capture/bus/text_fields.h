#pragma once
// Comma-separated fields of text captures.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace citcat {

/// The fields between commas; blanks around a field are dropped. Quotes have no meaning.
void split_fields(std::string_view line, std::vector<std::string_view>& fields);

/// A whole field as a number in `base` (10 or 16) of at most `max`; nullopt when it is not one.
std::optional<std::uint64_t> parse_number(std::string_view field, int base,
                                          std::uint64_t max = ~std::uint64_t{0});

}  // namespace citcat
