#include "view/model/register_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tuple>

#include "events/machine/cpu_place.h"
#include "events/machine/cpu_traits.h"
#include "x86/fx_image.h"

namespace citcat::view {

namespace {

constexpr std::array<std::string_view, 8> kGprs{"eax", "ecx", "edx", "ebx",
                                                "esp", "ebp", "esi", "edi"};
constexpr std::array<std::string_view, 8> kWideGprs{"rax", "rcx", "rdx", "rbx",
                                                    "rsp", "rbp", "rsi", "rdi"};
constexpr std::array<std::string_view, 8> kSegments{"es", "cs", "ss",   "ds",
                                                    "fs", "gs", "ldtr", "tr"};
constexpr std::array<const char*, 3> kX87Words{"fctrl", "fstat", "ftag"};
constexpr std::array<std::size_t, 3> kX87Offsets{fx_image::kControl, fx_image::kStatus,
                                                 fx_image::kTags};

template <std::size_t N>
std::optional<std::uint8_t> index_in(const std::array<std::string_view, N>& names,
                                     std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::uint8_t>(found - names.begin());
}

const Segment& segment_of(const CpuState& state, std::size_t i) {
  return i < 6 ? state.segment[i] : i == 6 ? state.ldtr : state.tr;
}

std::uint64_t base_high(const CpuState& state, std::size_t i) {
  if (!state.long_mode) return 0;
  const LongModeState& wide = *state.long_mode;
  return std::uint64_t{i < 6    ? wide.base_high[i]
                       : i == 6 ? wide.ldtr_base_high
                                : wide.tr_base_high}
         << 32;
}

std::uint64_t with_high(std::uint32_t low, const CpuState& state,
                        std::uint32_t LongModeState::*high) {
  return low | (state.long_mode ? std::uint64_t{(*state.long_mode).*high} << 32 : 0);
}

std::uint64_t control_register(const CpuState& state, unsigned number) {
  switch (number) {
    case 0:
      return with_high(state.cr0, state, &LongModeState::cr0_high);
    case 2:
      return with_high(state.cr2, state, &LongModeState::cr2_high);
    case 3:
      return with_high(state.cr3, state, &LongModeState::cr3_high);
    default:
      return with_high(state.cr4, state, &LongModeState::cr4_high);
  }
}

RegisterValue bytes_value(const CpuState& state, std::size_t at, std::size_t size) {
  RegisterValue value;
  std::memcpy(&value.low, state.fx.data() + at, std::min<std::size_t>(size, 8));
  if (size > 8) std::memcpy(&value.high, state.fx.data() + at + 8, size - 8);
  return value;
}

}  // namespace

const char* RegisterTable::group_name(Group group) {
  constexpr std::array<const char*, 7> kNames{"general", "flags", "segment", "control",
                                              "debug",   "x87",   "sse"};
  return kNames[static_cast<std::size_t>(group)];
}

RegisterTable::RegisterTable(const CpuState& initial) {
  const CpuTraits& traits = cpu_traits(initial.model);
  sixteen_bit_ = traits.sixteen_bit;
  wide_ = traits.has_long_mode;
  has_limits_ = traits.has_limits;
  for (const std::string& name : register_names(initial.model)) add(name);
  add_floating_point(initial);
}

/// Processors of 16 bits have no registers whose names begin with E.
std::string RegisterTable::shown_name(const std::string& state_name) const {
  if (sixteen_bit_ && state_name.size() > 2 && state_name[0] == 'e' &&
      state_name.find('.') == std::string::npos) {
    return state_name.substr(1);
  }
  return state_name;
}

void RegisterTable::add(const std::string& state_name) {
  const unsigned whole = wide_ ? 16 : sixteen_bit_ ? 4 : 8;
  const unsigned address = wide_ ? 16 : 8;
  Row row{shown_name(state_name), state_name, Group::control, Source::gpr, 0, address};
  const std::size_t dot = state_name.find('.');
  const std::string_view stem = std::string_view(state_name).substr(0, dot);
  const std::string_view part =
      dot == std::string::npos ? std::string_view() : std::string_view(state_name).substr(dot + 1);
  if (const auto gpr = index_in(wide_ ? kWideGprs : kGprs, state_name)) {
    row = {row.name, state_name, Group::general, Source::gpr, *gpr, whole};
  } else if (const auto segment = index_in(kSegments, stem)) {
    row.index = *segment;
    row.group = Group::segment;
    if (!has_limits_ && part != "" && part != "base") return;
    row.source = part == ""        ? Source::selector
                 : part == "base"  ? Source::base
                 : part == "limit" ? Source::limit
                                   : Source::attributes;
    if (part == "" || part == "attributes") row.digits = 4;
    if (part == "limit") row.digits = 8;
  } else if (stem == "gdtr" || stem == "idtr") {
    row.index = stem == "idtr";
    row.source = part == "base" ? Source::table_base : Source::table_limit;
    if (part != "base") row.digits = 4;
  } else if (state_name.size() > 1 && state_name[0] == 'r' &&
             state_name.find_first_not_of("0123456789", 1) == std::string::npos) {
    row.index = static_cast<std::uint8_t>(std::stoi(state_name.substr(1)) - 8);
    row.group = Group::general;
    row.source = Source::extended;
  } else if (state_name == "eip" || state_name == "rip") {
    row = {row.name, state_name, Group::general, Source::ip, 0, whole};
  } else if (state_name == "eflags" || state_name == "rflags") {
    row = {row.name, state_name, Group::flags, Source::flags, 0, whole};
  } else if (state_name == "cr8" || state_name == "efer" || state_name == "xcr0") {
    row.source = state_name == "cr8"    ? Source::cr8
                 : state_name == "efer" ? Source::efer
                                        : Source::xcr0;
  } else if (stem.substr(0, 2) == "cr" || stem.substr(0, 2) == "dr") {
    row.source = stem[0] == 'c' ? Source::cr : Source::dr;
    if (stem[0] == 'd') row.group = Group::debug;
    row.index = static_cast<std::uint8_t>(stem[2] - '0');
    if (stem[0] == 'c' && sixteen_bit_) row.digits = 4;
  } else if (state_name == "a20_mask") {
    row.source = Source::a20;
    row.digits = 8;
  } else if (state_name == "smbase") {
    row.source = Source::smbase;
    row.digits = 8;
  } else if (state_name == "tsc") {
    row.source = Source::tsc;
    row.digits = 16;
  } else {
    return;  // the FXSAVE image, of which there are rows of their own
  }
  rows_.push_back(row);
}

void RegisterTable::add_floating_point(const CpuState& initial) {
  if (sixteen_bit_ && (initial.cr0 & kNoCoprocessor) != 0) return;
  const auto index = [](std::size_t i) { return static_cast<std::uint8_t>(i); };
  for (std::size_t i = 0; i < 8; ++i) {
    rows_.push_back({fmt::format("st{}", i), "fx", Group::x87, Source::st, index(i), 20});
  }
  for (std::size_t i = 0; i < kX87Words.size(); ++i) {
    rows_.push_back({kX87Words[i], "fx", Group::x87, Source::x87_word, index(i), 4});
  }
  const bool has_sse = wide_ || cpu_traits(initial.model).instructions == InstructionSet::p6;
  if (!has_sse) return;
  for (std::size_t i = 0; i < (wide_ ? 16u : 8u); ++i) {
    rows_.push_back({fmt::format("xmm{}", i), "fx", Group::sse, Source::xmm, index(i), 32});
  }
  rows_.push_back({"mxcsr", "fx", Group::sse, Source::mxcsr, 0, 8});
}

RegisterValue RegisterTable::value(std::size_t i, const CpuState& state) const {
  const Row& row = rows_[i];
  const std::size_t n = row.index;
  const std::uint64_t mask =
      row.digits >= 16 ? ~std::uint64_t{0} : (std::uint64_t{1} << 4 * row.digits) - 1;
  const auto of = [&](std::uint64_t value) { return RegisterValue{value & mask, 0}; };
  switch (row.source) {
    case Source::gpr:
      return of(state.gpr[n] |
                (state.long_mode ? std::uint64_t{state.long_mode->gpr_high[n]} << 32 : 0));
    case Source::extended:
      return of(state.long_mode->r[n]);
    case Source::ip:
      return of(instruction_pointer(state));
    case Source::flags:
      return of(with_high(state.eflags, state, &LongModeState::rflags_high));
    case Source::selector:
      return of(segment_of(state, n).selector);
    case Source::base:
      return of(segment_of(state, n).base | base_high(state, n));
    case Source::limit:
      return of(segment_of(state, n).limit);
    case Source::attributes:
      return of(segment_of(state, n).attributes);
    case Source::table_base:
      return of(n == 0 ? with_high(state.gdtr.base, state, &LongModeState::gdtr_base_high)
                       : with_high(state.idtr.base, state, &LongModeState::idtr_base_high));
    case Source::table_limit:
      return of(n == 0 ? state.gdtr.limit : state.idtr.limit);
    case Source::cr:
      return of(control_register(state, row.index));
    case Source::cr8:
      return of(state.long_mode->cr8);
    case Source::efer:
      return of(state.long_mode->efer);
    case Source::xcr0:
      return of(state.long_mode->xcr0);
    case Source::dr:
      return of(state.dr[n] |
                (state.long_mode ? std::uint64_t{state.long_mode->dr_high[n]} << 32 : 0));
    case Source::a20:
      return of(state.a20_mask);
    case Source::smbase:
      return of(state.smbase);
    case Source::tsc:
      return of(state.tsc);
    case Source::st:
      return bytes_value(state, fx_image::kRegisters + fx_image::kSlot * n,
                         fx_image::kRegisterBytes);
    case Source::x87_word:
      return bytes_value(state, kX87Offsets[n], kX87Offsets[n] == fx_image::kTags ? 1 : 2);
    case Source::xmm:
      return bytes_value(state, fx_image::kXmm + fx_image::kSlot * n, fx_image::kSlot);
    case Source::mxcsr:
      return bytes_value(state, fx_image::kMxcsr, 4);
  }
  return {};
}

bool RegisterTable::has_same_system(const CpuState& a, const CpuState& b) {
  const auto wide_system = [](const CpuState& state) {
    LongModeState wide = state.long_mode.value_or(LongModeState{});
    wide.gpr_high = {};
    wide.r = {};
    wide.rip_high = wide.rflags_high = 0;
    return wide;
  };
  const auto system = [](const CpuState& s) {
    return std::tie(s.segment, s.ldtr, s.tr, s.gdtr, s.idtr, s.cr0, s.cr2, s.cr3, s.cr4, s.dr,
                    s.a20_mask, s.smbase, s.tsc);
  };
  return system(a) == system(b) && (!a.long_mode || wide_system(a) == wide_system(b));
}

std::string RegisterTable::text(std::size_t i, const RegisterValue& value) const {
  const unsigned digits = rows_[i].digits;
  if (digits <= 16) return fmt::format("{:0{}x}", value.low, digits);
  return fmt::format("{:0{}x}{:016x}", value.high, digits - 16, value.low);
}

std::optional<std::size_t> RegisterTable::find(const std::string& name) const {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace citcat::view
