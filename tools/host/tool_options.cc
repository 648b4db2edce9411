#include "tools/host/tool_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "formats/io/error.h"

namespace citcat::tools {

namespace {

/// The parts of `text` between separators.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

/// Decimal, hexadecimal after 0x, with k, M or G after it for powers of 1024.
std::optional<std::uint64_t> parse_size(const std::string& text) {
  const bool hex = text.starts_with("0x");
  const char* const begin = text.data() + (hex ? 2 : 0);
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value, hex ? 16 : 10);
  if (error != std::errc{} || stop == begin) return std::nullopt;
  unsigned shift = 0;
  if (stop != end) {
    if (end - stop != 1) return std::nullopt;
    const char unit = *stop;
    shift = unit == 'k' || unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
    if (shift == 0) return std::nullopt;
  }
  if (std::bit_width(value) + static_cast<int>(shift) > 64) return std::nullopt;
  return value << shift;
}

}  // namespace

ToolOptions ToolOptions::parse(const std::string& text, const char* option) {
  ToolOptions options;
  options.option_ = option;
  options.text_ = text;
  const std::size_t colon = text.find(':');
  options.tool_ = text.substr(0, colon);
  if (options.tool_.empty()) {
    throw UsageError(options.option_ + ": expected NAME or NAME:key=value,..., found \"" + text +
                     "\"");
  }
  if (colon == std::string::npos) return options;
  for (const std::string& part : split(text.substr(colon + 1), ',')) {
    const std::size_t equal = part.find('=');
    const std::string key = part.substr(0, equal);
    if (key.empty()) {
      throw UsageError(options.option_ + " " + text + ": expected key=value, found \"" + part +
                       "\"");
    }
    const std::string value = equal == std::string::npos ? "yes" : part.substr(equal + 1);
    if (!options.values_.emplace(key, value).second) {
      throw UsageError(options.option_ + " " + text + ": " + key + " is given twice");
    }
  }
  return options;
}

std::optional<std::string> ToolOptions::take(const std::string& key) {
  known_.insert(key);
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

void ToolOptions::refuse(const std::string& key, const std::string& expected) const {
  throw UsageError(fmt::format("{} {}: {}: expected {}, found {}", option_, text_, key, expected,
                               values_.at(key)));
}

std::uint64_t ToolOptions::number(const std::string& key, std::uint64_t fallback,
                                  std::uint64_t least, std::uint64_t most) {
  const auto value = take(key);
  if (!value) return fallback;
  const auto number = parse_size(*value);
  if (!number || *number < least || *number > most) {
    refuse(key, fmt::format("a number from {} to {}", least, most));
  }
  return *number;
}

std::uint64_t ToolOptions::power_of_two(const std::string& key, std::uint64_t fallback,
                                        std::uint64_t least, std::uint64_t most) {
  const std::uint64_t value = number(key, fallback, least, most);
  if (!std::has_single_bit(value)) {
    refuse(key, fmt::format("a power of two from {} to {}", least, most));
  }
  return value;
}

std::vector<std::uint64_t> ToolOptions::powers_of_two(const std::string& key,
                                                      std::uint64_t fallback, std::uint64_t least,
                                                      std::uint64_t most) {
  std::vector<std::uint64_t> values;
  for (const std::string& text : list(key)) {
    const auto value = parse_size(text);
    const bool fits = value && *value >= least && *value <= most && std::has_single_bit(*value);
    if (!fits || std::find(values.begin(), values.end(), *value) != values.end()) {
      refuse(key,
             fmt::format("powers of two from {} to {} with + in between, each once", least, most));
    }
    values.push_back(*value);
  }
  return values.empty() ? std::vector{fallback} : values;
}

std::string ToolOptions::text(const std::string& key, const std::string& fallback) {
  return take(key).value_or(fallback);
}

std::string ToolOptions::one_of(const std::string& key, const std::string& fallback,
                                const std::vector<std::string>& choices) {
  const std::string value = take(key).value_or(fallback);
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    refuse(key, fmt::format("one of {}", fmt::join(choices, ", ")));
  }
  return value;
}

std::vector<std::string> ToolOptions::list(const std::string& key) {
  const auto value = take(key);
  return value ? split(*value, '+') : std::vector<std::string>{};
}

bool ToolOptions::flag(const std::string& key) {
  return take(key) && one_of(key, "no", {"yes", "no"}) == "yes";
}

void ToolOptions::leave_to_other() {
  for (const auto& [key, value] : values_) known_.insert(key);
}

void ToolOptions::finish() const {
  for (const auto& [key, value] : values_) {
    if (known_.contains(key)) continue;
    const std::string knows =
        known_.empty() ? "it has no options" : fmt::format("it has {}", fmt::join(known_, ", "));
    throw UsageError(fmt::format("{} {}: {} has no option {} ({}; {}:help explains them)", option_,
                                 text_, tool_, key, knows, tool_));
  }
}

}  // namespace citcat::tools
