#pragma once
// The files of a page, by name.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace citcat::view {

/// What the file of that name holds; nullopt where there is none.
using PageSource = std::function<std::optional<std::string_view>(std::string_view name)>;

}  // namespace citcat::view
