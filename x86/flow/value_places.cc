#include "x86/flow/value_places.h"

#include <array>
#include <charconv>
#include <utility>

namespace citcat {
namespace {

constexpr std::array<const char*, 16> kRoots{"ax", "cx", "dx",  "bx",  "sp",  "bp",  "si",  "di",
                                             "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};
constexpr std::array<const char*, 6> kSegmentNames{"es", "cs", "ss", "ds", "fs", "gs"};
constexpr std::array<std::pair<const char*, unsigned>, 17> kFlagNames{{{"cf", 0},
                                                                       {"pf", 2},
                                                                       {"af", 4},
                                                                       {"zf", 6},
                                                                       {"sf", 7},
                                                                       {"tf", 8},
                                                                       {"if", 9},
                                                                       {"df", 10},
                                                                       {"of", 11},
                                                                       {"iopl", 12},
                                                                       {"nt", 14},
                                                                       {"rf", 16},
                                                                       {"vm", 17},
                                                                       {"ac", 18},
                                                                       {"vif", 19},
                                                                       {"vip", 20},
                                                                       {"id", 21}}};
struct NamedPlaces {
  const char* name;
  PlaceRange range;
};
constexpr std::array<NamedPlaces, 19> kNamed{{{"fsw", {place::kFpuStatus, 2}},
                                              {"fcw", place::one(place::kFpuControl)},
                                              {"ftw", place::one(place::kFpuTags)},
                                              {"mxcsr", place::one(place::kMxcsr)},
                                              {"cr0", place::one(place::kControl)},
                                              {"cr2", place::one(place::kControl + 1)},
                                              {"cr3", place::one(place::kControl + 2)},
                                              {"cr4", place::one(place::kControl + 3)},
                                              {"cr8", place::one(place::kControl + 4)},
                                              {"dr", place::one(place::kDebug)},
                                              {"gdtr", place::one(place::kTables)},
                                              {"idtr", place::one(place::kTables + 1)},
                                              {"ldtr", place::one(place::kTables + 2)},
                                              {"tr", place::one(place::kTables + 3)},
                                              {"msr", place::one(place::kMsrs)},
                                              {"xcr0", place::one(place::kXcr0)},
                                              {"flags", {place::kFlags, 16}},
                                              {"eflags", {place::kFlags, 32}},
                                              {"rflags", {place::kFlags, 32}}}};

/// A number below `end` that `text` is, all of it.
std::optional<unsigned> number_below(std::string_view text, unsigned end) {
  unsigned value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  if (!whole || value >= end) return std::nullopt;
  return value;
}

std::optional<PlaceRange> legacy_register(std::string_view name) {
  constexpr std::array<const char*, 4> kLow{"al", "cl", "dl", "bl"}, kHigh{"ah", "ch", "dh", "bh"};
  constexpr std::array<const char*, 4> kWideLow{"spl", "bpl", "sil", "dil"};
  for (unsigned r = 0; r < 4; ++r) {
    if (name == kLow[r]) return place::gpr(r, 0, 1);
    if (name == kHigh[r]) return place::gpr(r, 1, 1);
    if (name == kWideLow[r]) return place::gpr(r + 4, 0, 1);
  }
  for (unsigned r = 0; r < 8; ++r) {
    if (name == kRoots[r]) return place::gpr(r, 0, 2);
    if (name.size() != 3 || name.substr(1) != kRoots[r]) continue;
    if (name.front() == 'e') return place::gpr(r, 0, 4);
    if (name.front() == 'r') return place::gpr(r, 0, 8);
  }
  return std::nullopt;
}

std::optional<PlaceRange> extended_register(std::string_view name) {
  unsigned bytes = 8;
  switch (name.back()) {
    case 'd':
      bytes = 4;
      break;
    case 'w':
      bytes = 2;
      break;
    case 'b':
      bytes = 1;
      break;
    default:
      break;
  }
  if (bytes != 8) name.remove_suffix(1);
  for (unsigned r = 8; r < 16; ++r) {
    if (name == kRoots[r]) return place::gpr(r, 0, bytes);
  }
  return std::nullopt;
}

bool holds(const PlaceSet& set, PlaceRange range) {
  for (unsigned i = 0; i < range.count; ++i) {
    if (!set[range.first + i]) return false;
  }
  return range.count != 0;
}

void take(PlaceSet& set, PlaceRange range) {
  for (unsigned i = 0; i < range.count; ++i) set.reset(range.first + i);
}

/// The name of the part of general register `r`.
std::string part_name(unsigned r, unsigned bytes) {
  const std::string root = kRoots[r];
  if (r >= 8) return root + (bytes == 8 ? "" : bytes == 4 ? "d" : bytes == 2 ? "w" : "b");
  if (bytes == 8) return "r" + root;
  if (bytes == 4) return "e" + root;
  if (bytes == 2) return root;
  return r < 4 ? std::string(1, root.front()) + "l" : root + "l";
}

void add_gpr_names(PlaceSet& left, unsigned r, NameWidth width, std::vector<std::string>& names) {
  const unsigned widest = width == NameWidth::bits64 ? 8 : width == NameWidth::bits32 ? 4 : 2;
  for (unsigned bytes = widest; bytes != 0; bytes /= 2) {
    const PlaceRange part = place::gpr(r, 0, bytes);
    if (!holds(left, part)) continue;
    names.push_back(part_name(r, bytes));
    take(left, part);
  }
  if (r < 4 && holds(left, place::gpr(r, 1, 1))) {
    names.push_back(std::string(1, kRoots[r][0]) + "h");
    take(left, place::gpr(r, 1, 1));
  }
  // Bytes in the middle have no names: the register's, with their numbers.
  for (unsigned b = 0; b < 8; ++b) {
    if (!left[place::kGprs + 8 * r + b]) continue;
    unsigned end = b;
    while (end < 8 && left[place::kGprs + 8 * r + end]) ++end;
    if (b >= widest) break;  // what the processor does not have
    names.push_back(part_name(r, widest) + "[" + std::to_string(b) +
                    (end - b > 1 ? "-" + std::to_string(end - 1) : "") + "]");
    b = end;
  }
}

/// Registers that are named as a whole wherever any byte of them is in the set.
void add_whole(const PlaceSet& left, unsigned first, unsigned bytes, unsigned count,
               const char* name, std::vector<std::string>& names) {
  for (unsigned r = 0; r < count; ++r) {
    bool any = false;
    for (unsigned b = 0; b < bytes; ++b) any |= left[first + r * bytes + b];
    if (any) names.push_back(name + std::to_string(r));
  }
}

}  // namespace

std::optional<PlaceRange> places_named(std::string_view name) {
  if (name.empty()) return std::nullopt;
  if (const auto legacy = legacy_register(name)) return legacy;
  if (const auto extended = extended_register(name)) return extended;
  for (unsigned s = 0; s < kSegmentNames.size(); ++s) {
    if (name == kSegmentNames[s]) return place::segment(s);
  }
  for (const auto& [flag, bit] : kFlagNames) {
    if (name == flag)
      return PlaceRange{static_cast<std::uint16_t>(place::kFlags + bit),
                        static_cast<std::uint16_t>(bit == 12 ? 2 : 1)};
  }
  for (const NamedPlaces& named : kNamed) {
    if (name == named.name) return named.range;
  }
  if (name.starts_with("xmm")) {
    if (const auto number = number_below(name.substr(3), 16)) return place::vector(*number);
  }
  if (name.starts_with("st") || name.starts_with("mm")) {
    if (const auto number = number_below(name.substr(2), 8)) {
      return place::stack(*number, name.front() == 'm' ? 8 : place::kStackBytes);
    }
  }
  return std::nullopt;
}

std::vector<std::string> place_names(const PlaceSet& places, NameWidth width) {
  std::vector<std::string> names;
  PlaceSet left = places;
  for (unsigned r = 0; r < 16; ++r) add_gpr_names(left, r, width, names);
  for (const auto& [flag, bit] : kFlagNames) {
    if (left[place::kFlags + bit]) names.emplace_back(flag);
  }
  for (unsigned s = 0; s < kSegmentNames.size(); ++s) {
    if (left[place::kSegments + s]) names.emplace_back(kSegmentNames[s]);
  }
  add_whole(left, place::kVectors, 16, 16, "xmm", names);
  add_whole(left, place::kStack, place::kStackBytes, 8, "st", names);
  for (const NamedPlaces& named : kNamed) {
    if (named.range.first < place::kFpuStatus) continue;
    bool any = false;
    for (unsigned i = 0; i < named.range.count; ++i) any |= left[named.range.first + i];
    if (any) names.emplace_back(named.name);
  }
  return names;
}

}  // namespace citcat
