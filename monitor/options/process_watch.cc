#include "monitor/options/process_watch.h"

#include <array>
#include <cstring>

namespace citcat::monitor {

bool ProcessWatch::starts_program(CodeSize code) const {
  constexpr unsigned kStackPointer = 4;
  const unsigned registers = code == CodeSize::bits64 ? 16 : 8;
  for (unsigned n = 0; n < registers; ++n)
    if (n != kStackPointer && registers_.gpr(n) != 0) return false;
  return true;
}

std::optional<std::uint64_t> ProcessWatch::word_at(std::uint64_t linear, unsigned bytes) const {
  std::array<std::uint8_t, 8> read{};
  if (!read_(linear, std::span(read).first(bytes))) return std::nullopt;
  std::uint64_t value = 0;
  std::memcpy(&value, read.data(), sizeof value);
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
/// environment and a zero, pairs of the auxiliary vector, in words of so many bytes (System V ABI,
/// Intel386 supplement, "Process Stack"; AMD64 supplement, "Process Initialization").
std::optional<std::string> ProcessWatch::path_of_program(unsigned word) const {
  constexpr std::uint32_t kMostWords = 1u << 20;       // a quarter of a stack of 8 MiB, execve(2)
  constexpr std::uint32_t kAuxEnd = 0, kAuxPath = 31;  // AT_NULL, AT_EXECFN of <elf.h>
  constexpr std::size_t kLongestPath = 4096;
  const std::uint64_t stack = registers_.gpr(4);
  const auto arguments = word_at(stack, word);
  if (!arguments || *arguments == 0 || *arguments > kMostWords) return std::nullopt;
  std::uint64_t at = stack + word * (*arguments + 2);
  for (std::uint32_t n = 0;; ++n, at += word) {
    const auto variable = word_at(at, word);
    if (!variable || n == kMostWords) return std::nullopt;
    if (*variable == 0) break;
  }
  for (std::uint32_t n = 0; n < kMostWords; ++n) {
    const std::uint64_t pair = at + word + 2 * word * n;
    const auto kind = word_at(pair, word), value = word_at(pair + word, word);
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

bool ProcessWatch::block(CodeSize code) {
  if (!wanted() || !starts_program(code)) return false;
  const auto path = path_of_program(code == CodeSize::bits64 ? 8 : 4);
  return path && note_name(*path);
}

bool ProcessWatch::call(CodeSize code) {
  struct Calls {
    std::uint32_t exit, control_process, exit_group;  // <asm/unistd_32.h>, <asm/unistd_64.h>
    unsigned first, second;                           // registers of arguments
  };
  const Calls calls =
      code == CodeSize::bits64 ? Calls{60, 157, 231, 7, 6} : Calls{1, 172, 252, 3, 1};
  constexpr std::uint32_t kSetName = 15;    // PR_SET_NAME
  constexpr std::size_t kLongestName = 15;  // TASK_COMM_LEN without the zero
  if (!wanted()) return false;
  const std::uint64_t number = registers_.gpr(0);
  if (number == calls.control_process && registers_.gpr(calls.first) == kSetName)
    return note_name(text(registers_.gpr(calls.second), kLongestName));
  const bool exits = number == calls.exit || number == calls.exit_group;
  return exits && running_.erase(registers_.control().cr3) != 0 &&
         trigger_.kind == Trigger::Kind::exit;
}

}  // namespace citcat::monitor
