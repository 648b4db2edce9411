#include "capture/import/still_lines.h"

#include <algorithm>
#include <string_view>

namespace citcat {
namespace {

// In so many samples some thousand bytes cross any of the buses.
constexpr std::size_t kEnoughSamples = 16384;

bool must_move(const PinDescription& pin) {
  static constexpr std::string_view kMoving[] = {"S0", "S1", "QS0", "QS1", "ALE",   "ADS",    "RD",
                                                 "WR", "DC", "BHE", "BLE", "READY", "CODINTA"};
  if (std::find(std::begin(kMoving), std::end(kMoving), pin.name) != std::end(kMoving)) return true;
  if (pin.name.starts_with("AD") && pin.name != "ADS") return true;
  if (pin.name[0] == 'D' && pin.name.size() > 1 && pin.name[1] >= '0' && pin.name[1] <= '9')
    return true;
  return pin.address_bit == 0;
}

}  // namespace

void StillLines::add(const SampleBlock& block) {
  for (std::size_t at = 0; at + unit_ <= block.bytes.size(); at += unit_, ++samples_) {
    for (std::size_t i = 0; i < unit_; ++i) {
      high_[i] = static_cast<std::uint8_t>(high_[i] | block.bytes[at + i]);
      low_[i] = static_cast<std::uint8_t>(low_[i] | ~block.bytes[at + i]);
    }
  }
}

StillLines::Level StillLines::level_of(const PinMatch& pin) const {
  const auto channel = static_cast<std::size_t>(pin.channel);
  const bool high = ((high_[channel / 8] >> channel % 8) & 1) != 0;
  const bool low = ((low_[channel / 8] >> channel % 8) & 1) != 0;
  if (high && low) return Level::moves;
  return high != pin.inverted ? Level::high : Level::low;
}

std::vector<std::string> StillLines::complaints(const BusMatch& match, bool failed) const {
  if (samples_ < kEnoughSamples) return {};
  int highest = -1;  // address bit that moves
  std::size_t moving = 0;
  for (const PinMatch& pin : match.pins) {
    if (pin.channel < 0 || level_of(pin) != Level::moves) continue;
    highest = std::max(highest, pin.pin->address_bit);
    ++moving;
  }
  std::vector<std::string> lines;
  // Nothing moves where the machine was off.
  if (moving * 2 < match.matched) return lines;
  const bool shares = match.bus->dead_line != nullptr;
  for (const PinMatch& pin : match.pins) {
    if (pin.channel < 0 || level_of(pin) == Level::moves) continue;
    const int bit = pin.pin->address_bit;
    const bool is_high = level_of(pin) == Level::high;
    const bool is_below = shares && bit >= 0 && bit < highest;
    // A16 to A18 show S3 to S5 after the address: code has 0 1, and S5 is high where interrupts are
    // enabled, and S6 low.
    const bool shows_status =
        shares && ((bit >= 16 && bit <= 18) || (is_high && pin.pin->name == match.bus->dead_line));
    // Ports and acknowledges only have them so.
    const std::string& name = pin.pin->name;
    const bool is_active =
        name == "IOM" ? is_high : !is_high && (name == "S2" || name == "MIO" || name == "INTA");
    const bool is_suspect = failed && bit < 0 && pin.required;
    if (!must_move(*pin.pin) && !is_below && !shows_status && !is_active && !is_suspect) continue;
    lines.push_back(pin.pin->name + " stays " + (is_high ? "high" : "low") + " in the first " +
                    std::to_string(samples_) +
                    " samples, though the machine runs: its probe may be off, or the line stuck");
  }
  return lines;
}

}  // namespace citcat
