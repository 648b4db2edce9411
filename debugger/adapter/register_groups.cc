#include "debugger/adapter/register_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace citcat::dap {
namespace {

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

bool is_general(const std::string& name) {
  if (is_one_of(name, {"eip", "rip", "eflags", "rflags", "r8", "r9"})) return true;
  static constexpr std::array<const char*, 8> kRoots{"ax", "cx", "dx", "bx",
                                                     "sp", "bp", "si", "di"};
  const bool prefixed = name.size() == 3 && (name[0] == 'e' || name[0] == 'r');
  if (prefixed && name[1] == '1') return true;  // r10 to r15
  return prefixed && std::any_of(kRoots.begin(), kRoots.end(),
                                 [&](const char* root) { return name.substr(1) == root; });
}

RegisterGroup group_of(const std::string& name) {
  if (is_general(name)) return RegisterGroup::general;
  const std::string first = name.substr(0, name.find('_'));
  if (is_one_of(first, {"cs", "ds", "es", "fs", "gs", "ss"})) return RegisterGroup::segments;
  if (name.starts_with("xmm") || name == "mxcsr") return RegisterGroup::vectors;
  const bool stack = name.size() == 3 && name.starts_with("st");
  if (stack ||
      is_one_of(name, {"fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"})) {
    return RegisterGroup::floating_point;
  }
  return RegisterGroup::system;
}

std::string hex_value(const std::vector<std::uint8_t>& bytes) {
  std::string text = "0x";
  for (auto b = bytes.rbegin(); b != bytes.rend(); ++b) text += fmt::format("{:02x}", *b);
  return text;
}

std::uint64_t number_of(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = std::min<std::size_t>(bytes.size(), 8); i-- != 0;) {
    value = value << 8 | bytes[i];
  }
  return value;
}

}  // namespace

const char* group_name(RegisterGroup group) {
  switch (group) {
    case RegisterGroup::general:
      return "Registers";
    case RegisterGroup::segments:
      return "Segments";
    case RegisterGroup::floating_point:
      return "Floating point";
    case RegisterGroup::vectors:
      return "SSE";
    case RegisterGroup::system:
      return "System";
  }
  return "?";
}

std::vector<ShownRegister> registers_of(const Debuggee& debuggee, RegisterGroup group) {
  const RegisterFile& file = debuggee.target().register_file();
  const RegisterView view = debuggee.target().registers();
  std::vector<ShownRegister> all;
  for (std::size_t r = 0; r < file.count(); ++r) {
    if (group_of(file.name(r)) != group) continue;
    ShownRegister shown{file.name(r), "unknown", std::nullopt};
    if (const auto value = file.value(r, view)) {
      shown.value = hex_value(*value);
      const bool pointer = group == RegisterGroup::general && !shown.name.ends_with("flags");
      if (pointer) shown.pointer = number_of(*value);
    }
    all.push_back(std::move(shown));
  }
  return all;
}

std::optional<NamedRegister> register_named(const Debuggee& debuggee, const std::string& name) {
  const RegisterFile& file = debuggee.target().register_file();
  const auto find = [&](const std::string& wanted) -> std::optional<NamedRegister> {
    for (std::size_t r = 0; r < file.count(); ++r) {
      if (file.name(r) != wanted || file.bytes(r) > 8) continue;
      NamedRegister found{std::nullopt, static_cast<unsigned>(file.bytes(r))};
      if (const auto value = file.value(r, debuggee.target().registers())) {
        found.value = number_of(*value);
      }
      return found;
    }
    return std::nullopt;
  };
  if (auto found = find(name)) return found;
  // Lower halves: eax of rax, ax of either.
  const bool of_32 = name.size() == 3 && name[0] == 'e';
  const std::string root = of_32 ? name.substr(1) : name;
  if (root.size() != 2) return std::nullopt;
  for (const char prefix : {'r', 'e'}) {
    auto found = find(prefix + root);
    if (!found) continue;
    found->bytes = of_32 ? 4 : 2;
    if (found->value) *found->value &= of_32 ? 0xffffffffu : 0xffffu;
    return found;
  }
  return std::nullopt;
}

}  // namespace citcat::dap
