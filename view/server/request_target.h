#pragma once
// The parts of a request line of HTTP.

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace citcat::view {

struct RequestTarget {
  std::string path;  ///< decoded
  std::map<std::string, std::string> parameters;
};

/// "/token/api/code?at=5" and the like; nullopt for any other text: too long, or with percent signs
/// that stand for nothing, or with more parameters than any question has.
std::optional<RequestTarget> parse_target(std::string_view target);

}  // namespace citcat::view
