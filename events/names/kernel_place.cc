#include "events/names/kernel_place.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace citcat {
namespace {

constexpr std::uint32_t kMsrSysenterEip = 0x176;      // SDM vol. 2, SYSENTER
constexpr std::uint32_t kMsrLongTarget = 0xc0000082;  // SDM vol. 2, SYSCALL: LSTAR

struct Entry {
  std::uint32_t msr;
  std::string_view name;
};
/// What Linux has called them, the latest first: on amd64 arch/x86/entry/entry_64.S (system_call
/// until 4.1), on i386 arch/x86/entry/entry_32.S, ia32entry.S.
constexpr std::array<Entry, 5> kEntries{{{kMsrLongTarget, "entry_SYSCALL_64"},
                                         {kMsrLongTarget, "system_call"},
                                         {kMsrSysenterEip, "entry_SYSENTER_32"},
                                         {kMsrSysenterEip, "ia32_sysenter_target"},
                                         {kMsrSysenterEip, "sysenter_entry"}}};

}  // namespace

std::optional<std::int64_t> kernel_shift(const SymbolModule& kernel, const CpuState& state) {
  for (const Entry& entry : kEntries) {
    const auto msr = std::find_if(state.msrs.begin(), state.msrs.end(),
                                  [&](const Msr& m) { return m.index == entry.msr; });
    if (msr == state.msrs.end() || msr->value == 0) continue;
    const auto symbol = std::find_if(kernel.symbols.begin(), kernel.symbols.end(),
                                     [&](const Symbol& s) { return s.name == entry.name; });
    if (symbol == kernel.symbols.end()) continue;
    return static_cast<std::int64_t>(msr->value - symbol->address.value);
  }
  return std::nullopt;
}

}  // namespace citcat
