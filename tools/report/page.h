#pragma once
// The page of `citcat report`: one file of HTML with its style, its scripts and the figures they
// draw, which needs nothing from anywhere else.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace citcat::tools {

/// A file that was put into the program when it was built (CMakeLists.txt of this folder):
/// "page.html", "d3.min.js". Throws InternalError for any other.
std::string_view page_file(std::string_view name);

/// `data`: what the scripts find (page/data.js says what of it they use); `title`: of the page.
std::string make_page(const std::string& title, const nlohmann::ordered_json& data);

}  // namespace citcat::tools
