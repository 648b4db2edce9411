#include "tools/guest/system_call_table.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace citcat::tools {

namespace {

#define SYSTEM_CALL(number, name, arguments) SystemCallRow{number, #name, arguments},
constexpr std::array kRows{
#include "tools/guest/system_calls.def"
};
constexpr std::array kWideRows{
#include "tools/guest/system_calls_64.def"
};
#undef SYSTEM_CALL

constexpr bool comes_before(const SystemCallRow& a, const SystemCallRow& b) {
  return a.number < b.number;
}
static_assert(std::is_sorted(kRows.begin(), kRows.end(), comes_before));
static_assert(std::is_sorted(kWideRows.begin(), kWideRows.end(), comes_before));

struct MeaningRow {
  std::string_view name;
  SystemCallMeaning meaning;
};
constexpr MeaningRow kMeanings[] = {
    {"exit", SystemCallMeaning::exit},
    {"fork", SystemCallMeaning::fork},
    {"execve", SystemCallMeaning::execve},
    {"sigreturn", SystemCallMeaning::sigreturn},
    {"clone", SystemCallMeaning::clone},
    {"prctl", SystemCallMeaning::prctl},
    {"rt_sigreturn", SystemCallMeaning::rt_sigreturn},
    {"vfork", SystemCallMeaning::vfork},
    {"exit_group", SystemCallMeaning::exit_group},
    {"execveat", SystemCallMeaning::execveat},
    {"clone3", SystemCallMeaning::clone3},
};

}  // namespace

const SystemCallRow* find_system_call(std::uint32_t number, SystemCallInterface of) {
  const bool wide = of == SystemCallInterface::amd64;
  const std::span<const SystemCallRow> rows =
      wide ? std::span<const SystemCallRow>(kWideRows) : std::span<const SystemCallRow>(kRows);
  const auto row =
      std::lower_bound(rows.begin(), rows.end(), number,
                       [](const SystemCallRow& r, std::uint32_t n) { return r.number < n; });
  return row != rows.end() && row->number == number ? &*row : nullptr;
}

SystemCallMeaning system_call_meaning(std::uint32_t number, SystemCallInterface of) {
  const SystemCallRow* const row = find_system_call(number, of);
  if (row == nullptr) return SystemCallMeaning::other;
  const auto* const found = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                         [&](const MeaningRow& m) { return m.name == row->name; });
  return found != std::end(kMeanings) ? found->meaning : SystemCallMeaning::other;
}

}  // namespace citcat::tools
