#include "monitor/log/logged_state.h"

#include <array>
#include <charconv>
#include <cstddef>

#include "monitor/log/hexadecimal.h"

namespace citcat::monitor {
namespace {

/// The hexadecimal numbers of a line from `at` on, separated by blanks.
template <std::size_t N>
std::size_t hex_list(std::string_view line, std::size_t at, std::array<std::uint64_t, N>& out) {
  std::size_t count = 0;
  while (count < N && at < line.size()) {
    while (at < line.size() && line[at] == ' ') ++at;
    std::uint64_t value = 0;
    const auto result = std::from_chars(line.data() + at, line.data() + line.size(), value, 16);
    if (result.ec != std::errc{}) break;
    out[count++] = value;
    at = static_cast<std::size_t>(result.ptr - line.data());
  }
  return count;
}

bool parse_segment(std::string_view line, LoggedState& state) {
  static constexpr std::string_view kNames[8] = {
      "ES =", "CS =", "SS =", "DS =", "FS =", "GS =", "LDT=", "TR ="};
  for (std::size_t n = 0; n < 8; ++n) {
    if (line.substr(0, 4) != kNames[n]) continue;
    std::array<std::uint64_t, 4> v{};
    if (hex_list(line, 4, v) != 4) return false;
    LoggedSegment& segment = n < 6 ? state.segment[n] : n == 6 ? state.ldtr : state.tr;
    segment = {static_cast<std::uint32_t>(v[0]), v[1], static_cast<std::uint32_t>(v[2]),
               static_cast<std::uint32_t>(v[3])};
    return true;
  }
  return false;
}

/// General registers as they are printed in 64-bit mode.
bool parse_wide_registers(std::string_view line, LoggedState& state) {
  static constexpr std::string_view kLines[4][4] = {{"RAX=", "RBX=", "RCX=", "RDX="},
                                                    {"RSI=", "RDI=", "RBP=", "RSP="},
                                                    {"R8 =", "R9 =", "R10=", "R11="},
                                                    {"R12=", "R13=", "R14=", "R15="}};
  static constexpr unsigned kNumbers[4][4] = {
      {0, 3, 1, 2}, {6, 7, 5, 4}, {8, 9, 10, 11}, {12, 13, 14, 15}};
  for (unsigned n = 0; n < 4; ++n) {
    if (!line.starts_with(kLines[n][0])) continue;
    state.code64 = true;
    for (unsigned k = 0; k < 4; ++k)
      if (!hex_after(line, kLines[n][k], state.gpr[kNumbers[n][k]])) return false;
    return true;
  }
  return false;
}

}  // namespace

bool parse_state_line(std::string_view line, LoggedState& state) {
  const std::string_view head = line.substr(0, 4);
  if (parse_wide_registers(line, state)) return true;
  if (head == "EAX=")
    return hex_after(line, "EAX=", state.gpr[0]) && hex_after(line, "ECX=", state.gpr[1]) &&
           hex_after(line, "EDX=", state.gpr[2]) && hex_after(line, "EBX=", state.gpr[3]);
  if (head == "ESI=")
    return hex_after(line, "ESP=", state.gpr[4]) && hex_after(line, "EBP=", state.gpr[5]) &&
           hex_after(line, "ESI=", state.gpr[6]) && hex_after(line, "EDI=", state.gpr[7]);
  if (head == "EFER") return hex_after(line, "EFER=", state.efer);
  if (head == "EIP=" || head == "RIP=") {
    std::uint32_t flag = 0;
    if (hex_after(line, "SMM=", flag)) state.smm = flag != 0;
    if (hex_after(line, "A20=", flag)) state.a20 = flag != 0;
    return hex_after(line, "IP=", state.ip) &&
           (hex_after(line, "EFL=", state.eflags) || hex_after(line, "RFL=", state.eflags));
  }
  if (head == "GDT=" || head == "IDT=") {
    std::array<std::uint64_t, 2> v{};
    if (hex_list(line, 4, v) != 2) return false;
    (head == "GDT=" ? state.gdt_base : state.idt_base) = v[0];
    (head == "GDT=" ? state.gdt_limit : state.idt_limit) = static_cast<std::uint32_t>(v[1]);
    return true;
  }
  if (head == "CR0=")
    return hex_after(line, "CR0=", state.cr0) && hex_after(line, "CR2=", state.cr2) &&
           hex_after(line, "CR3=", state.cr3) && hex_after(line, "CR4=", state.cr4);
  if (head == "DR0=")
    return hex_after(line, "DR0=", state.dr[0]) && hex_after(line, "DR1=", state.dr[1]) &&
           hex_after(line, "DR2=", state.dr[2]) && hex_after(line, "DR3=", state.dr[3]);
  if (head == "DR6=")
    return hex_after(line, "DR6=", state.dr[6]) && hex_after(line, "DR7=", state.dr[7]);
  return parse_segment(line, state);
}

}  // namespace citcat::monitor
