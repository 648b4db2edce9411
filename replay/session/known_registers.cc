#include "replay/session/known_registers.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "replay/session/replayer.h"

namespace citcat {

namespace {

/// What programs load: the others are not worth a replay.
bool is_loaded_by_programs(const std::string& name) {
  constexpr std::string_view kNames[] = {
      "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eflags", "es",    "cs",
      "ss",  "ds",  "fs",  "gs",  "rax", "rcx", "rdx", "rbx", "rsp",    "rbp",   "rsi",
      "rdi", "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",    "rflags"};
  return std::find(std::begin(kNames), std::end(kNames), name.substr(0, name.find('.'))) !=
         std::end(kNames);
}

}  // namespace

KnownRegisters::KnownRegisters(const Recording& recording) {
  const CpuState& initial = recording.initial;
  std::vector<std::string> missing;
  std::copy_if(initial.unknown.begin(), initial.unknown.end(), std::back_inserter(missing),
               is_loaded_by_programs);
  if (missing.empty()) return;
  Replayer replayer(recording, nullptr, {});
  for (std::uint64_t i = 0; i < kReach && !missing.empty(); ++i) {
    const Moment before = replayer.moment();
    const ReplayReport report = replayer.step();
    const Moment here = replayer.moment();
    if (report.end == ReplayReport::End::diverged || here == before) return;
    const CpuState now = replayer.machine().save();
    std::erase_if(missing, [&](const std::string& name) {
      if (get_register(now, name) == get_register(initial, name)) return false;
      known_from_.emplace(name, here);
      return true;
    });
  }
}

void KnownRegisters::settle(CpuState& state, Moment moment) const {
  std::erase_if(state.unknown, [&](const std::string& name) {
    const auto from = known_from_.find(name);
    return from != known_from_.end() && from->second <= moment;
  });
}

}  // namespace citcat
