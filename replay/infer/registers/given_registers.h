#pragma once
// The registers of a state that are given beforehand, when the rest must be worked out.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "events/machine/cpu_state.h"

namespace citcat {

class GivenRegisters {
 public:
  /// Nothing is.
  GivenRegisters() = default;
  /// All that `state` has and does not list as unknown.
  explicit GivenRegisters(CpuState state) : state_(std::move(state)) {}

  std::optional<std::uint64_t> value(std::string_view name) const;
  bool has(std::string_view name) const { return value(name).has_value(); }
  bool has_msr(std::uint32_t index) const;
  bool has_fx() const { return state_ && !is_unknown(*state_, "fx"); }
  std::uint32_t ram_bytes() const { return state_ ? state_->ram_bytes : 0; }
  /// Puts all of it into `state`.
  void fill(CpuState& state) const;

 private:
  std::optional<CpuState> state_;
};

inline std::optional<std::uint64_t> GivenRegisters::value(std::string_view name) const {
  if (!state_ || is_unknown(*state_, name)) return std::nullopt;
  return get_register(*state_, name);
}

inline bool GivenRegisters::has_msr(std::uint32_t index) const {
  return state_ && std::any_of(state_->msrs.begin(), state_->msrs.end(),
                               [index](const Msr& msr) { return msr.index == index; });
}

inline void GivenRegisters::fill(CpuState& state) const {
  if (!state_) return;
  for (const std::string& name : register_names(state.model)) {
    if (const auto given = value(name)) set_register(state, name, *given);
  }
  if (has_fx()) state.fx = state_->fx;
  state.cpuid = state_->cpuid;
  std::erase_if(state.msrs, [this](const Msr& msr) { return has_msr(msr.index); });
  state.msrs.insert(state.msrs.end(), state_->msrs.begin(), state_->msrs.end());
  std::sort(state.msrs.begin(), state.msrs.end(),
            [](const Msr& a, const Msr& b) { return a.index < b.index; });
}

}  // namespace citcat
