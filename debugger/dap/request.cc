#include "debugger/dap/request.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "formats/io/error.h"
#include "formats/text/printable_text.h"

namespace citcat::dap {
namespace {

/// Objects within objects; the protocol's own have four.
constexpr int kDeepest = 24;

[[noreturn]] void expect(const char* name, const char* what, const Json& found) {
  throw UsageError(fmt::format("{}: expected {}, found {}", name, what, found.type_name()));
}

}  // namespace

const Json* Arguments::find(const char* name) const {
  if (json_ == nullptr || !json_->is_object()) return nullptr;
  const auto found = json_->find(name);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> Arguments::text(const char* name) const {
  const Json* const found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) expect(name, "a text", *found);
  return found->get<std::string>();
}

std::string Arguments::required_text(const char* name) const {
  auto found = text(name);
  if (!found) throw UsageError(fmt::format("{} is required", name));
  return std::move(*found);
}

std::optional<std::int64_t> Arguments::integer(const char* name) const {
  const Json* const found = find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number_integer()) expect(name, "a whole number", *found);
  return found->get<std::int64_t>();
}

std::int64_t Arguments::integer(const char* name, std::int64_t otherwise, std::int64_t first,
                                std::int64_t last) const {
  const std::int64_t value = integer(name).value_or(otherwise);
  if (value < first || value > last) {
    throw UsageError(
        fmt::format("{}: expected a number from {} to {}, found {}", name, first, last, value));
  }
  return value;
}

bool Arguments::flag(const char* name) const {
  const Json* const found = find(name);
  if (found == nullptr) return false;
  if (!found->is_boolean()) expect(name, "true or false", *found);
  return found->get<bool>();
}

const Json& Arguments::array(const char* name, std::size_t most) const {
  static const Json kNone = Json::array();
  const Json* const found = find(name);
  if (found == nullptr) return kNone;
  if (!found->is_array()) expect(name, "an array", *found);
  if (found->size() > most) {
    throw UsageError(
        fmt::format("{}: expected {} elements at most, found {}", name, most, found->size()));
  }
  return *found;
}

std::vector<std::string> Arguments::texts(const char* name, std::size_t most) const {
  std::vector<std::string> all;
  for (const Json& item : array(name, most)) {
    if (!item.is_string()) expect(name, "texts", item);
    all.push_back(item.get<std::string>());
  }
  return all;
}

Arguments Arguments::object(const char* name) const {
  const Json* const found = find(name);
  if (found == nullptr) return {};
  if (!found->is_object()) expect(name, "an object", *found);
  return Arguments(*found);
}

Request parse_request(std::string_view message) {
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) throw UsageError("a message is nested too deeply");
    return true;
  };
  Json json = Json::parse(message, shallow, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) throw UsageError("a message is not a JSON object");
  Request request;
  const Arguments top(json);
  request.number = top.integer("seq").value_or(0);
  if (top.text("type").value_or("") != "request") throw UsageError("a message is not a request");
  request.command = top.required_text("command");
  const auto arguments = json.find("arguments");
  if (arguments == json.end() || arguments->is_null()) return request;
  if (!arguments->is_object()) expect("arguments", "an object", *arguments);
  request.arguments = std::move(*arguments);
  return request;
}

std::uint64_t parse_reference(const std::string& text, const char* what) {
  std::string_view digits = text;
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (hex) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [rest, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error != std::errc() || rest != digits.data() + digits.size()) {
    throw UsageError(fmt::format("{}: expected an address such as 0x1000, found '{}'", what,
                                 printable_text(text.substr(0, 40))));
  }
  return value;
}

std::string framed(const Json& message) {
  const std::string body = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
}

std::string base64_of(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t there = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t b = 0; b < 3; ++b) {
      group = group << 8 | (b < there ? static_cast<std::uint8_t>(bytes[i + b]) : 0u);
    }
    for (std::size_t d = 0; d < 4; ++d) {
      text += d <= there ? kDigits[group >> (18 - 6 * d) & 63] : '=';
    }
  }
  return text;
}

}  // namespace citcat::dap
