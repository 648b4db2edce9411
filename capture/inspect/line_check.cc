#include "capture/inspect/line_check.h"

#include <algorithm>
#include <bit>
#include <set>

namespace citcat {
namespace {

// A line that is fine stays at one level in so many surroundings only where a program takes steps
// larger than the line, as through the registers of a device: those lie in a few pages.
constexpr std::size_t kEnoughWithinPage = 128, kEnoughPages = 8;
// The lines that tell the quarters of a page: no device has its registers so far apart.
constexpr unsigned kPagePartLine = 8;
constexpr std::size_t kEnoughPageParts = 12;
// Lines that tell pages. A PC with less than 16 MiB of addresses has memory at both ends of them;
// with more there are devices here and there at the top, and lines that all of them share.
constexpr std::uint32_t kFewAddresses = 0x00ffffff;
constexpr std::size_t kEnoughOfFew = 2, kEnoughOfMany = 8, kSome = 2;
// Code and data of any program have more different bytes, each level of each line among them.
constexpr std::size_t kEnoughValues = 16;
constexpr std::uint64_t kEnoughBytes = 1000;
// Whoever fetches across a line so often has fetched across the lines below. Not so from one page
// to the next: what adjoins there is the system's choice.
constexpr std::uint64_t kEnoughSteps = 16;
constexpr unsigned kPageLines = 12;

std::string line_name(char bus, unsigned line) { return bus + std::to_string(line); }

}  // namespace

/// The lines from this one on are those that could have been either way.
std::size_t LineCheck::size_class(const BusTransaction& t) {
  return std::min<std::size_t>(kSizes - 1,
                               static_cast<std::size_t>(std::countr_zero(std::bit_ceil(t.size))));
}

LineCheck::Starts& LineCheck::starts_of(FrameNumber page) {
  if (last_page_ == nullptr || last_page_number_ != page) {
    last_page_ = &pages_[page];
    last_page_number_ = page;
  }
  return *last_page_;
}

void LineCheck::add(const BusTransaction& t, bool has_data) {
  if (t.size == 0) return;
  const std::size_t size = size_class(t);
  starts_of(t.address.page())[size].set(t.address.offset_in_page());
  if (t.op == BusOp::code_read) follow_fetches(t, size);
  if (!has_data) return;
  for (std::uint32_t i = 0; i < t.size; ++i) {
    Lane& lane = lanes_[t.address.plus32(i).value % kLanes];
    ++lane.bytes;
    lane.values.set(t.data[i]);
  }
}

void LineCheck::follow_fetches(const BusTransaction& t, std::size_t size) {
  if (last_fetch_ && *last_fetch_ == t.address && t.address.value >= t.size) {
    const std::uint32_t changed = t.address.low32() ^ (t.address.low32() - t.size);
    ++steps_[size][static_cast<std::size_t>(31 - std::countl_zero(changed))];
  }
  last_fetch_ = t.address.plus32(t.size);
}

LineCheck::Levels LineCheck::levels_within_page(unsigned line) const {
  const std::uint32_t above = std::uint32_t{2} << line;
  Levels levels;
  for (const auto& [number, starts] : pages_) {
    const std::size_t before = levels.surroundings;
    for (std::uint32_t begin = 0; begin < kPageBytes; begin += above) {
      bool any = false;
      for (std::uint32_t at = begin; at < begin + above; ++at) {
        bool here = false;
        for (std::size_t size = 0; size < kSizes && size <= line; ++size) here |= starts[size][at];
        if (!here) continue;
        any = true;
        ((at >> line & 1) != 0 ? levels.high : levels.low) = true;
      }
      if (levels.moves()) return levels;
      if (any) ++levels.surroundings;
    }
    if (levels.surroundings != before) ++levels.pages;
  }
  return levels;
}

LineCheck::Levels LineCheck::levels_above_page(unsigned line) const {
  Levels levels;
  std::set<FrameNumber> surroundings;
  for (const auto& [number, starts] : pages_) {
    ((number >> (line - kPageLines) & 1) != 0 ? levels.high : levels.low) = true;
    surroundings.insert(number >> (line - kPageLines) >> 1);
  }
  levels.surroundings = surroundings.size();
  return levels;
}

std::optional<FindingConfidence> LineCheck::judge(unsigned line, const Levels& levels,
                                                  std::uint32_t mask) {
  if (levels.moves()) return std::nullopt;
  bool enough = false;
  if (line < kPageLines) {
    enough = levels.pages >= kEnoughPages &&
             levels.surroundings >= (line < kPagePartLine ? kEnoughWithinPage : kEnoughPageParts);
  } else {
    enough = levels.surroundings >= (mask <= kFewAddresses ? kEnoughOfFew : kEnoughOfMany);
    if (!enough && levels.surroundings >= kSome) return FindingConfidence::possible;
  }
  return enough ? std::optional(FindingConfidence::likely) : std::nullopt;
}

void LineCheck::find_stuck_address_lines(std::uint32_t mask, std::vector<Finding>& out) const {
  for (unsigned line = 0; line < 32; ++line) {
    if ((mask >> line & 1) == 0) continue;
    const Levels levels = line < kPageLines ? levels_within_page(line) : levels_above_page(line);
    const auto confidence = judge(line, levels, mask);
    if (!confidence) continue;
    out.push_back({"stuck-line", *confidence,
                   "address line " + line_name('A', line) + " stays " +
                       (levels.high ? "high" : "low") + ", wherever the " +
                       std::to_string(levels.surroundings) +
                       " settings seen of the lines above it point"});
  }
}

void LineCheck::find_stuck_data_lines(std::uint32_t bus_bytes, std::vector<Finding>& out) const {
  if (!std::has_single_bit(bus_bytes) || bus_bytes > kLanes) return;
  std::vector<Lane> lanes(bus_bytes);
  for (std::size_t i = 0; i < kLanes; ++i) {
    lanes[i % bus_bytes].bytes += lanes_[i].bytes;
    lanes[i % bus_bytes].values |= lanes_[i].values;
  }
  const bool any_varied = std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) {
    return lane.values.count() >= kEnoughValues;
  });
  for (unsigned i = 0; i < bus_bytes; ++i) {
    const Lane& lane = lanes[i];
    if (lane.bytes < kEnoughBytes || !any_varied) continue;
    unsigned high = 0xff, low = 0xff;
    for (unsigned value = 0; value < 256; ++value) {
      if (!lane.values[value]) continue;
      high &= value;
      low &= ~value;
    }
    // Some values that happen to have a bit in common tell nothing; one value in all places does.
    const bool off = lane.values.count() == 1;
    if (!off && lane.values.count() < kEnoughValues) continue;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (((high | low) >> bit & 1) == 0) continue;
      out.push_back({"stuck-data-line", FindingConfidence::likely,
                     "data line " + line_name('D', 8 * i + bit) + " stays " +
                         ((high >> bit & 1) != 0 ? "high" : "low") + " in all " +
                         std::to_string(lane.bytes) + " bytes of its lane"});
    }
  }
}

void LineCheck::find_disorder(std::uint32_t mask, std::vector<Finding>& out) const {
  std::array<bool, kPageLines> crossed{}, expected{};
  for (std::size_t size = 0; size < kSizes; ++size) {
    std::uint64_t above = 0;
    for (std::size_t line = kPageLines; line-- > size;) {
      crossed[line] |= steps_[size][line] != 0;
      expected[line] |= above >= kEnoughSteps;
      above = std::max(above, steps_[size][line]);
    }
  }
  for (unsigned line = 0; line < kPageLines; ++line) {
    if ((mask >> line & 1) == 0 || crossed[line] || !expected[line]) continue;
    out.push_back({"line-order", FindingConfidence::likely,
                   "no fetch goes on from the one before by a step of address line " +
                       line_name('A', line) +
                       ", though some do by lines above it: swapped with another?"});
  }
}

std::vector<LineCheck::Finding> LineCheck::findings(const BusModel& bus) const {
  std::vector<Finding> found;
  find_stuck_address_lines(bus.address_mask, found);
  find_stuck_data_lines(bus.bus_bytes, found);
  find_disorder(bus.address_mask, found);
  return found;
}

}  // namespace citcat
