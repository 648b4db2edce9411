#pragma once
// A request of the debug adapter protocol, read with care, because the client may send anything.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace citcat::dap {

using Json = nlohmann::json;

/// The arguments of a request. What is asked for with another type than it has to have is a
/// UsageError, which names it.
class Arguments {
 public:
  Arguments() = default;
  /// `json`: an object, or null for none. It must outlive the arguments.
  explicit Arguments(const Json& json) : json_(&json) {}

  bool has(const char* name) const { return find(name) != nullptr; }
  std::optional<std::string> text(const char* name) const;
  std::string required_text(const char* name) const;
  std::optional<std::int64_t> integer(const char* name) const;
  /// Within [first, last]; else a UsageError.
  std::int64_t integer(const char* name, std::int64_t otherwise, std::int64_t first,
                       std::int64_t last) const;
  bool flag(const char* name) const;
  /// Calls f(Arguments) for each object of an array, and refuses more than `most` of them.
  template <class F>
  void each(const char* name, std::size_t most, F&& f) const {
    for (const Json& item : array(name, most)) f(Arguments(item));
  }
  std::vector<std::string> texts(const char* name, std::size_t most) const;
  Arguments object(const char* name) const;

 private:
  const Json* find(const char* name) const;
  const Json& array(const char* name, std::size_t most) const;

  const Json* json_ = nullptr;
};

struct Request {
  std::int64_t number = 0;  ///< "seq"
  std::string command;
  Json arguments;
};

/// Throws UsageError if it is not a request: not JSON, nested too deeply, without a command.
Request parse_request(std::string_view message);

/// Offsets from a reference, in bytes, forwards and backwards.
inline constexpr std::int64_t kMostOffset = std::int64_t{1} << 40;

/// The number that a reference to memory is: "0x..." or decimal. Throws UsageError naming `what`.
std::uint64_t parse_reference(const std::string& text, const char* what);

/// The bytes of a message as they go over the line. Text that is not UTF-8 is converted to it.
std::string framed(const Json& message);

std::string base64_of(std::string_view bytes);

}  // namespace citcat::dap
