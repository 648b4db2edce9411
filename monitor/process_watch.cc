#include "monitor/process_watch.h"

#include <array>
#include <cstring>

namespace citcat::monitor {

bool ProcessWatch::starts_program() const {
  constexpr unsigned kEsp = 4, kRegisters = 8;
  for (unsigned n = 0; n < kRegisters; ++n)
    if (n != kEsp && registers_.gpr(n) != 0) return false;
  return true;
}

std::optional<std::uint32_t> ProcessWatch::dword(std::uint64_t linear) const {
  std::array<std::uint8_t, 4> bytes;
  if (!read_(linear, bytes)) return std::nullopt;
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Up to its zero.
std::string ProcessWatch::text(std::uint64_t linear, std::size_t longest) const {
  std::string text;
  for (std::uint8_t c; text.size() < longest; text += static_cast<char>(c))
    if (!read_(linear + text.size(), {&c, 1}) || c == 0) break;
  return text;
}

/// From the stack of a program that begins: the number of its arguments, they and a zero, its
/// environment and a zero, pairs of the auxiliary vector (System V ABI, Intel386 supplement,
/// "Process Stack").
std::optional<std::string> ProcessWatch::path_of_program() const {
  constexpr std::uint32_t kMostWords = 1u << 20;       // a quarter of a stack of 8 MiB, execve(2)
  constexpr std::uint32_t kAuxEnd = 0, kAuxPath = 31;  // AT_NULL, AT_EXECFN of <elf.h>
  constexpr std::size_t kLongestPath = 4096;
  const std::uint64_t stack = registers_.gpr(4);
  const auto arguments = dword(stack);
  if (!arguments || *arguments == 0 || *arguments > kMostWords) return std::nullopt;
  std::uint64_t at = stack + 4 * (*arguments + 2);
  for (std::uint32_t n = 0;; ++n, at += 4) {
    const auto variable = dword(at);
    if (!variable || n == kMostWords) return std::nullopt;
    if (*variable == 0) break;
  }
  for (std::uint32_t n = 0; n < kMostWords; ++n) {
    const auto kind = dword(at + 4 + 8 * n), value = dword(at + 8 + 8 * n);
    if (!kind || !value || *kind == kAuxEnd) return std::nullopt;
    if (*kind != kAuxPath) continue;
    return text(*value, kLongestPath);
  }
  return std::nullopt;
}

/// A name without a folder is a file's in any.
bool ProcessWatch::is_named(const std::string& path) const {
  const bool whole = trigger_.text.find('/') != std::string::npos;
  return (whole ? path : path.substr(path.rfind('/') + 1)) == trigger_.text;
}

/// The program in these page tables is called this from now on. Page tables of one that was killed
/// may be used again.
bool ProcessWatch::note_name(const std::string& path) {
  const std::uint64_t address_space = registers_.control().cr3;
  if (!is_named(path)) {
    running_.erase(address_space);
    return false;
  }
  return running_.insert(address_space).second && trigger_.kind == Trigger::Kind::process;
}

bool ProcessWatch::block() {
  if (!wanted() || !starts_program()) return false;
  const auto path = path_of_program();
  return path && note_name(*path);
}

bool ProcessWatch::call() {
  constexpr std::uint32_t kExit = 1, kControlProcess = 172, kExitGroup = 252;  // <asm/unistd_32.h>
  constexpr std::uint32_t kSetName = 15;                                       // PR_SET_NAME
  constexpr std::size_t kLongestName = 15;  // TASK_COMM_LEN without the zero
  if (!wanted()) return false;
  const std::uint64_t number = registers_.gpr(0);
  if (number == kControlProcess && registers_.gpr(3) == kSetName)
    return note_name(text(registers_.gpr(1), kLongestName));
  const bool exits = number == kExit || number == kExitGroup;
  return exits && running_.erase(registers_.control().cr3) != 0 &&
         trigger_.kind == Trigger::Kind::exit;
}

}  // namespace citcat::monitor
