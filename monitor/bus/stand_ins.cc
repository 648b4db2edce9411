#include "monitor/bus/stand_ins.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kFrameShift = 12;
constexpr std::uint32_t kRoomBytes = 16 << 20;

/// Where a PC has nothing between its RAM and its devices: SeaBIOS gives addresses to devices from
/// below FEC00000h downwards (src/fw/pciinit.c, pci_bios_map_devices), and a Q35 has its
/// configuration space at B0000000h, 256 MiB.
constexpr struct {
  std::uint32_t begin, end;
} kEmpty[] = {{0x40000000, 0xb0000000}, {0xc0000000, 0xf0000000}};

}  // namespace

std::optional<std::uint32_t> StandIns::shown_or_given(std::uint64_t machine) {
  const std::uint64_t frame = machine >> kFrameShift;
  if (machine >= k4GiB && sink_.shows_processors()) {
    problem_ =
        "memory beyond 4 GiB is used, which is not shown of several processors; choose -m 2G";
    return std::nullopt;
  }
  if (machine < k4GiB) {
    const bool is_free = taken_.empty() || !taken_[frame];
    if (is_free) return static_cast<std::uint32_t>(machine);
    problem_ = "a page is used at which one beyond 4 GiB is shown; choose less RAM";
    return std::nullopt;
  }
  const auto known = frames_.find(frame);
  const auto held = known != frames_.end() ? std::optional(known->second) : give_out(frame);
  if (!held) return std::nullopt;
  return *held << kFrameShift | static_cast<std::uint32_t>(machine & 0xfff);
}

std::optional<std::uint32_t> StandIns::give_out(std::uint64_t frame) {
  if (rooms_.empty()) find_room();
  const std::size_t place = frame % given_.size();
  if (given_[place] == rooms_.size()) {
    problem_ = "more pages beyond 4 GiB are used than there is room to show; choose less RAM";
    return std::nullopt;
  }
  const std::uint32_t held = rooms_[given_[place]++] + static_cast<std::uint32_t>(place);
  frames_.emplace(frame, held);
  taken_[held] = true;
  memory_.show(frame << kFrameShift, held << kFrameShift);
  sink_.stand_in(held << kFrameShift, frame << kFrameShift);
  return held;
}

void StandIns::find_room() {
  taken_.resize(k4GiB >> kFrameShift);
  for (const auto& range : kEmpty)
    for (std::uint32_t room = range.begin; room < range.end; room += kRoomBytes)
      if (room >= memory_.low_bytes()) rooms_.push_back(room >> kFrameShift);
}

}  // namespace citcat::monitor
