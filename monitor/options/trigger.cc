#include "monitor/options/trigger.h"

#include <charconv>

namespace citcat::monitor {
namespace {

template <typename T>
bool parse_whole(std::string_view text, int base, T& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return result.ec == std::errc{} && result.ptr == text.data() + text.size() && !text.empty();
}

std::string_view without_0x(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return text;
}

}  // namespace

std::optional<Trigger> parse_trigger(std::string_view text) {
  Trigger out;
  if (text == "driver") {
    out.kind = Trigger::Kind::driver;
    return out;
  }
  if (text == "reset") {
    out.kind = Trigger::Kind::reset;
    return out;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view kind = text.substr(0, colon);
  std::string_view rest = text.substr(colon + 1);

  if (kind == "console" && !rest.empty()) {
    out.kind = Trigger::Kind::console;
    out.text = rest;
    return out;
  }
  if ((kind == "process" || kind == "exit") && !rest.empty()) {
    out.kind = kind == "exit" ? Trigger::Kind::exit : Trigger::Kind::process;
    out.text = rest;
    return out;
  }
  if (kind == "count") {
    out.kind = Trigger::Kind::count;
    return parse_whole(rest, 10, out.number) ? std::optional(out) : std::nullopt;
  }
  if (kind == "address") {
    out.kind = Trigger::Kind::address;
    return parse_whole(without_0x(rest), 16, out.number) ? std::optional(out) : std::nullopt;
  }
  if (kind == "port") {
    out.kind = Trigger::Kind::port;
    if (const std::size_t equal = rest.find('='); equal != std::string_view::npos) {
      std::uint32_t value = 0;
      if (!parse_whole(without_0x(rest.substr(equal + 1)), 16, value)) return std::nullopt;
      out.value = value;
      rest = rest.substr(0, equal);
    }
    return parse_whole(without_0x(rest), 16, out.number) && out.number <= 0xffff
               ? std::optional(out)
               : std::nullopt;
  }
  return std::nullopt;
}

bool PortWatch::write(std::uint32_t port, std::uint32_t value, unsigned size) {
  const std::uint32_t mask = size >= 4 ? 0xffffffff : (1u << (8 * size)) - 1;
  if (trigger_.kind == Trigger::Kind::port)
    return port == trigger_.number && (!trigger_.value || *trigger_.value == (value & mask));
  if (trigger_.kind != Trigger::Kind::console || port != kSerialData || size != 1) return false;
  seen_ += static_cast<char>(value);
  if (seen_.size() > trigger_.text.size()) seen_.erase(0, seen_.size() - trigger_.text.size());
  return seen_ == trigger_.text;
}

}  // namespace citcat::monitor
