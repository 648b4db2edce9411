#include "debugger/adapter/evaluation.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "debugger/adapter/register_groups.h"
#include "formats/io/error.h"
#include "formats/text/printable_text.h"

namespace citcat::dap {
namespace {

constexpr std::size_t kLongest = 512;
constexpr int kDeepestExpression = 32;

class Expression {
 public:
  Expression(const Debuggee& debuggee, std::string_view text)
      : debuggee_(debuggee), whole_(text), left_(text) {}

  Evaluated value() {
    const Evaluated result = sum();
    skip_blanks();
    if (!left_.empty()) fail("an end");
    return result;
  }

 private:
  [[noreturn]] void fail(const char* expected) const {
    throw UsageError(fmt::format("'{}': expected {} at character {}, found '{}'",
                                 printable_text(whole_), expected, whole_.size() - left_.size() + 1,
                                 printable_text(left_)));
  }
  void skip_blanks() {
    while (left_.starts_with(' ')) left_.remove_prefix(1);
  }
  bool take(char c) {
    skip_blanks();
    if (!left_.starts_with(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  std::string_view word() {
    skip_blanks();
    std::size_t n = 0;
    const auto belongs = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             c == '_' || c == '.' || c == ':' || c == '~';
    };
    // Names of C++ have "::"; a single colon says a size.
    while (n < left_.size() && belongs(left_[n])) {
      const bool colon = left_[n] == ':';
      if (colon && left_.substr(n, 2) != "::") break;
      n += colon ? 2 : 1;
    }
    const std::string_view word = left_.substr(0, n);
    left_.remove_prefix(n);
    return word;
  }

  Evaluated sum() {
    if (++depth_ > kDeepestExpression) throw UsageError("the expression is nested too deeply");
    Evaluated total = part();
    for (;;) {
      const bool plus = take('+');
      if (!plus && !take('-')) break;
      const Evaluated more = part();
      total.value = plus ? total.value + more.value : total.value - more.value;
      total.symbol.clear();
      total.place.reset();
    }
    --depth_;
    return total;
  }

  Evaluated memory(std::uint64_t address, unsigned bytes) {
    const LinearAddr at = debuggee_.target().address(address);
    const auto value = number_at(debuggee_.target().machine(), at, bytes);
    if (!value) throw UsageError(fmt::format("memory at {:#x} is not known", at.value));
    return {*value, bytes, "", at};
  }
  unsigned word_bytes() const {
    const int bits = debuggee_.target().code_bits();
    return static_cast<unsigned>(bits) / 8;
  }
  unsigned size() {
    if (!take(':')) return word_bytes();
    const std::string_view digits = word();
    if (digits.size() == 1 && (digits == "1" || digits == "2" || digits == "4" || digits == "8")) {
      return static_cast<unsigned>(digits[0] - '0');
    }
    fail("1, 2, 4 or 8 bytes");
  }

  Evaluated part() {
    if (take('(')) {
      Evaluated inner = sum();
      if (!take(')')) fail("')'");
      return inner;
    }
    if (take('[')) {
      const Evaluated inner = sum();
      if (!take(']')) fail("']'");
      return memory(inner.value, size());
    }
    if (take('*')) {
      if (++depth_ > kDeepestExpression) throw UsageError("the expression is nested too deeply");
      const Evaluated inner = part();
      --depth_;
      return memory(inner.value, word_bytes());
    }
    const bool is_register = take('$');
    const std::string_view name = word();
    if (name.empty()) fail("a number, a register or a name");
    if (!is_register && name[0] >= '0' && name[0] <= '9') return number(name);
    return named(std::string(name), is_register);
  }

  Evaluated number(std::string_view text) const {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    if (hex) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [rest, error] =
        std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
    if (error != std::errc() || rest != text.data() + text.size()) fail("a number");
    return {value, 8, ""};
  }

  Evaluated named(const std::string& name, bool is_register) const {
    if (const auto found = register_named(debuggee_, name)) {
      if (!found->value) throw UsageError("the value of " + name + " is not known");
      return {*found->value, found->bytes, ""};
    }
    if (!is_register) {
      if (const auto found = debuggee_.symbols().named(name)) {
        return {found->symbol->address.value + found->offset, 8, place_name(*found)};
      }
    }
    throw UsageError(fmt::format("there is no {} '{}'", is_register ? "register" : "name",
                                 printable_text(name)));
  }

  const Debuggee& debuggee_;
  const std::string_view whole_;
  std::string_view left_;
  int depth_ = 0;
};

}  // namespace

Evaluated evaluate(const Debuggee& debuggee, const std::string& expression) {
  if (expression.size() > kLongest) {
    throw UsageError(fmt::format("an expression has {} characters at most", kLongest));
  }
  Evaluated result = Expression(debuggee, expression).value();
  if (result.symbol.empty()) {
    result.symbol = debuggee.symbol_text(debuggee.target().address(result.value));
  }
  return result;
}

}  // namespace citcat::dap
