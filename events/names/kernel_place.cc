#include "events/names/kernel_place.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace citcat {
namespace {

constexpr std::uint32_t kMsrSysenterEip = 0x176;  // SDM vol. 2, SYSENTER
/// What Linux on i386 has called it, the latest first (arch/x86/entry/entry_32.S, ia32entry.S).
constexpr std::array<std::string_view, 3> kEntries{"entry_SYSENTER_32", "ia32_sysenter_target",
                                                   "sysenter_entry"};

}  // namespace

std::optional<std::int64_t> kernel_shift(const SymbolModule& kernel, const CpuState& state) {
  const auto msr = std::find_if(state.msrs.begin(), state.msrs.end(),
                                [](const Msr& m) { return m.index == kMsrSysenterEip; });
  if (msr == state.msrs.end() || msr->value == 0) return std::nullopt;
  for (const std::string_view name : kEntries) {
    const auto symbol = std::find_if(kernel.symbols.begin(), kernel.symbols.end(),
                                     [&](const Symbol& s) { return s.name == name; });
    if (symbol == kernel.symbols.end()) continue;
    return static_cast<std::int64_t>(msr->value - symbol->address.value);
  }
  return std::nullopt;
}

}  // namespace citcat
