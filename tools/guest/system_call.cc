#include "tools/guest/system_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tools/guest/guest.h"

namespace citcat::tools {

namespace {

/// How many items of a list of texts are shown.
constexpr std::size_t kShownItems = 32;
/// Results from here on are negative error numbers (Linux, include/linux/err.h: MAX_ERRNO).
constexpr std::int64_t kLowestError = -4095;

char letter(const SystemCall& call, unsigned argument) {
  const SystemCallRow* const row = find_system_call(call.number, call.of);
  if (row == nullptr || row->arguments == "?") return 'x';
  if (meaning_of(call) == SystemCallMeaning::prctl && call.arguments[0] == kSetName &&
      argument == 1)
    return 's';
  return argument < row->arguments.size() ? row->arguments[argument] : '\0';
}

/// `size` bytes, of which no more than are shown are read.
std::string buffer_text(const Guest& guest, LinearAddr at, std::size_t size) {
  const auto bytes = guest.bytes(at, std::min(size, kShownText));
  if (!bytes) return "";
  return quoted_text({bytes->begin(), bytes->end()}, kShownText) + (size > kShownText ? "..." : "");
}

std::string list_text(const Guest& guest, LinearAddr at) {
  std::string result = "[";
  for (std::size_t i = 0;; ++i) {
    const auto item = guest.word(guest.onward(at, guest.word_bytes() * i));
    if (!item) return "";
    if (*item == 0) return result + "]";
    if (i == kShownItems) return result + ", ...]";
    const auto text = guest.text(LinearAddr{*item}, kPathMax);
    if (!text) return "";
    result += (i == 0 ? "" : ", ") + quoted_text(*text, kPathMax);
  }
}

bool is_begun_with(char kind) { return kind == 's' || kind == 'v' || kind == 'w'; }

std::string argument_text(const SystemCall& call, unsigned i) {
  if (i >= call.known_arguments) return "?";
  const std::uint64_t value = call.arguments[i];
  switch (letter(call, i)) {
    case 'd':
      return std::to_string(static_cast<std::int32_t>(value));
    case 'l':
      return std::to_string(static_cast<std::int64_t>(value));
    case 'u':
      return std::to_string(value);
    case 'o':
      return value == 0 ? "0" : fmt::format("0{:o}", static_cast<std::uint32_t>(value));
    case 'x':
      return value == 0 ? "0" : fmt::format("{:#x}", value);
    default:
      if (value == 0) return "NULL";
      return call.texts[i].empty() ? fmt::format("{:#x}", value) : call.texts[i];
  }
}

bool is_error_number(std::int64_t result) { return result < 0 && result >= kLowestError; }

/// Calls that return an address.
bool returns_address(const SystemCall& call) {
  constexpr std::array<std::string_view, 5> kNames{"brk", "mmap", "mremap", "mmap2", "shmat"};
  const SystemCallRow* const row = find_system_call(call.number, call.of);
  return row != nullptr && std::find(kNames.begin(), kNames.end(), row->name) != kNames.end();
}

}  // namespace

std::string quoted_text(const std::string& text, std::size_t most) {
  std::string result = "\"";
  for (const char c : text.substr(0, most)) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c >= ' ' && c < 127) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return result + (text.size() > most ? "\"..." : "\"");
}

std::string system_call_name(std::uint32_t number, SystemCallInterface of) {
  const SystemCallRow* const row = find_system_call(number, of);
  return row != nullptr ? std::string(row->name) : "system_call_" + std::to_string(number);
}

std::string system_call_text(const SystemCall& call) {
  std::string text = system_call_name(call.number, call.of) + "(";
  for (unsigned i = 0; i < kSystemCallArguments && letter(call, i) != '\0'; ++i) {
    text += (i == 0 ? "" : ", ") + argument_text(call, i);
  }
  return text + ")";
}

bool is_error(const SystemCall& call) {
  return call.state == SystemCall::End::returned && is_error_number(signed_result(call));
}

std::string result_text(const SystemCall& call) {
  if (call.state == SystemCall::End::restarted) return "? (restarted)";
  if (call.state != SystemCall::End::returned) return "?";
  if (is_error(call)) {
    const char* const name = strerrorname_np(static_cast<int>(-signed_result(call)));
    return name != nullptr ? fmt::format("-1 {}", name) : std::to_string(signed_result(call));
  }
  if (returns_address(call)) return fmt::format("{:#x}", call.result);
  return std::to_string(signed_result(call));
}

void read_texts(SystemCall& call, const Guest& guest, bool ended) {
  for (unsigned i = 0; i < kSystemCallArguments; ++i) {
    const LinearAddr at{call.arguments[i]};
    if (at.value == 0 || !call.texts[i].empty()) continue;
    const char kind = letter(call, i);
    if (kind == 's') {
      if (const auto text = guest.text(at, kPathMax)) call.texts[i] = quoted_text(*text, kPathMax);
    } else if (kind == 'v') {
      call.texts[i] = list_text(guest, at);
    } else if (kind == 'w' && i + 1 < kSystemCallArguments) {
      call.texts[i] = buffer_text(guest, at, call.arguments[i + 1]);
    } else if (kind == 'r' && ended && !is_error_number(signed_result(call))) {
      call.texts[i] = buffer_text(guest, at, call.result);
    }
  }
}

bool wants_texts(const SystemCall& call) {
  for (unsigned i = 0; i < kSystemCallArguments; ++i) {
    if (call.arguments[i] != 0 && call.texts[i].empty() && is_begun_with(letter(call, i))) {
      return true;
    }
  }
  return false;
}

}  // namespace citcat::tools
