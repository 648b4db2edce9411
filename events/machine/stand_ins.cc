#include "events/machine/stand_ins.h"

#include <cstdio>

namespace citcat {
namespace {

constexpr std::uint64_t k4GiB = std::uint64_t{1} << 32;

std::string text(std::uint64_t address) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%08llx", static_cast<unsigned long long>(address));
  return digits;
}

}  // namespace

std::string StandIns::add(PhysAddr held, MachineAddr machine) {
  constexpr std::uint64_t kCommon = (std::uint64_t{1} << kCommonBits) - 1;
  if (held.value >= k4GiB || held.offset_in_page() != 0 || machine.offset_in_page() != 0)
    return "address: expected a page below 4 GiB, and one that it stands for";
  if (machine.value < k4GiB || machine.value >= kEnd)
    return "data: a stand-in is for a page from 4 GiB to 16 TiB, found one for " +
           text(machine.value);
  if (((held.value ^ machine.value) & kCommon) != 0)
    return "address: a page and its stand-in have the lower " + std::to_string(kCommonBits) +
           " bits in common, found " + text(held.value) + " for " + text(machine.value);
  const auto place = stand_ins_.find(machine.page());
  if (place != stand_ins_.end() && place->second == held.page()) return {};
  if (place != stand_ins_.end())
    return "data: " + text(machine.value) + " is at " +
           text(std::uint64_t{place->second} * kPageSize) + " already, found it at " +
           text(held.value);
  if (is_stand_in(held))
    return "address: " + text(held.value) + " stands for " + text(this->machine(held).value) +
           " already, found it for " + text(machine.value);
  machine_frames_.emplace(held.page(), machine.page());
  stand_ins_.emplace(machine.page(), held.page());
  pages_.push_back({held, machine});
  return {};
}

std::optional<PhysAddr> StandIns::held(MachineAddr a) const {
  if (a.value < k4GiB) {
    const PhysAddr same{a.value};
    return is_stand_in(same) ? std::nullopt : std::optional(same);
  }
  const auto found = stand_ins_.find(a.page());
  if (found == stand_ins_.end()) return std::nullopt;
  return PhysAddr{std::uint64_t{found->second} * kPageSize + a.offset_in_page()};
}

MachineAddr StandIns::machine(PhysAddr held) const {
  const auto found = machine_frames_.find(held.page());
  if (found == machine_frames_.end()) return MachineAddr{held.value};
  return MachineAddr{found->second * kPageSize + held.offset_in_page()};
}

}  // namespace citcat
