#include "tools/guest/system_call_table.h"

#include <algorithm>
#include <array>

namespace citcat::tools {

namespace {

constexpr std::array kRows{
#define SYSTEM_CALL(number, name, arguments) SystemCallRow{number, #name, arguments},
#include "tools/guest/system_calls.def"
#undef SYSTEM_CALL
};
static_assert(std::is_sorted(kRows.begin(), kRows.end(),
                             [](const SystemCallRow& a, const SystemCallRow& b) {
                               return a.number < b.number;
                             }));

}  // namespace

const SystemCallRow* find_system_call(std::uint32_t number) {
  const auto* const row =
      std::lower_bound(kRows.begin(), kRows.end(), number,
                       [](const SystemCallRow& r, std::uint32_t n) { return r.number < n; });
  return row != kRows.end() && row->number == number ? row : nullptr;
}

}  // namespace citcat::tools
