#include "events/machine/stand_ins.h"

#include <cstdio>

namespace citcat {
namespace {

constexpr std::uint64_t k4GiB = std::uint64_t{1} << 32;
/// Address bits that a page and its stand-in have in common, and the end of what has one.
constexpr unsigned kCommonBits = 24;
constexpr std::uint64_t kEnd = std::uint64_t{1} << 44;

std::string text(std::uint64_t address) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%08llx", static_cast<unsigned long long>(address));
  return digits;
}

}  // namespace

std::string StandIns::add(PhysAddr shown, PhysAddr page) {
  constexpr std::uint64_t kCommon = (std::uint64_t{1} << kCommonBits) - 1;
  if (shown.value >= k4GiB || shown.offset_in_page() != 0 || page.offset_in_page() != 0)
    return "address: expected a page below 4 GiB, and one that it stands for";
  if (page.value < k4GiB || page.value >= kEnd)
    return "data: a stand-in is for a page from 4 GiB to 16 TiB, found one for " + text(page.value);
  if (((shown.value ^ page.value) & kCommon) != 0)
    return "address: a page and its stand-in have the lower " + std::to_string(kCommonBits) +
           " bits in common, found " + text(shown.value) + " for " + text(page.value);
  const auto place = stand_ins_.find(page.page());
  if (place != stand_ins_.end() && place->second == shown.page()) return {};
  if (place != stand_ins_.end())
    return "data: " + text(page.value) + " is at " + text(place->second * kPageSize) +
           " already, found it at " + text(shown.value);
  if (frames_.count(shown.page()) != 0)
    return "address: " + text(shown.value) + " stands for " + text(meant(shown).value) +
           " already, found it for " + text(page.value);
  frames_.emplace(shown.page(), page.page());
  stand_ins_.emplace(page.page(), shown.page());
  return {};
}

}  // namespace citcat
