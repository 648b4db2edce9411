#include "view/model/moment_text.h"

#include <fmt/format.h>

#include <charconv>

#include "events/position_text.h"

namespace citcat::view {

std::string moment_text(const Moment& moment) {
  return fmt::format("{}~{}", position_text(moment.position), moment.deliveries);
}

std::optional<WantedMoment> parse_moment(std::string_view text) {
  const std::size_t mark = text.find('~');
  const auto position = parse_position(text.substr(0, mark));
  if (!position) return std::nullopt;
  if (mark == std::string_view::npos) return WantedMoment{*position, std::nullopt};
  const std::string_view count = text.substr(mark + 1);
  std::uint64_t deliveries = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), deliveries);
  if (count.empty() || error != std::errc() || end != count.data() + count.size()) {
    return std::nullopt;
  }
  return WantedMoment{*position, deliveries};
}

}  // namespace citcat::view
