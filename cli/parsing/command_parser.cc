#include "cli/parsing/command_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

#include "cli/parsing/command_description.h"

namespace citcat {
namespace {

/// "a, b or c".
std::string any_of(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

/// Refuses a word that `accepts` does not accept, in our words: CLI11 shows its users C++ types.
/// The empty description keeps the check out of the help text.
void check_word(CLI::Option& option, std::function<bool(const std::string&)> accepts,
                const std::string& expected) {
  option.check(
      [accepts = std::move(accepts), expected](const std::string& word) {
        return accepts(word) ? "" : fmt::format("expected {}, found {}", expected, word);
      },
      "");
}

/// The number that a word is. CLI11 takes negative and too large ones for unsigned types, and 010
/// for 8.
template <class T>
std::optional<T> number_of(const std::string& word) {
  T value{};
  if constexpr (std::is_integral_v<T>) {
    const bool hexadecimal = word.starts_with("0x") || word.starts_with("0X");
    const std::size_t digits = hexadecimal ? 2 : word.starts_with('-') ? 1 : 0;
    if (!hexadecimal && word.size() > digits + 1 && word[digits] == '0') return std::nullopt;
    const char* const end = word.data() + word.size();
    const auto [behind, error] =
        std::from_chars(word.data() + (hexadecimal ? 2 : 0), end, value, hexadecimal ? 16 : 10);
    if (error != std::errc() || behind != end) return std::nullopt;
  } else if (!CLI::detail::lexical_cast(word, value)) {
    return std::nullopt;
  }
  return value;
}

template <class T>
bool is_number(const std::string& word) {
  return number_of<T>(word).has_value();
}

template <class T>
struct ValueOf {
  using type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using type = T;
};

/// The word for its value in help, and a check that it is a value of that type.
template <class T>
void describe_value(CLI::Option& option) {
  using Value = typename ValueOf<T>::type;
  if constexpr (std::is_integral_v<Value>) {
    option.type_name("N");
    const auto most = std::numeric_limits<Value>::max();
    check_word(option, is_number<Value>,
               most <= std::numeric_limits<std::uint16_t>::max()
                   ? fmt::format("a number from 0 to {}", most)
                   : "a number");
  } else if constexpr (std::is_floating_point_v<Value>) {
    option.type_name("X");
    check_word(option, is_number<Value>, "a number");
  } else {
    option.type_name("VALUE");
  }
}

}  // namespace

ParserOption ParserOption::required() const {
  option_->required();
  return *this;
}

ParserOption ParserOption::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

ParserOption ParserOption::repeated() const {
  // Without the last of these the first occurrence would take the arguments after it, too.
  option_->expected(1)->take_all()->allow_extra_args(false);
  return *this;
}

ParserOption ParserOption::show_default() const {
  option_->capture_default_str();
  return *this;
}

ParserOption ParserOption::one_of(const std::vector<std::string>& words) const {
  option_->type_name(type_of(words));
  check_word(
      *option_,
      [words](const std::string& word) {
        return std::find(words.begin(), words.end(), word) != words.end();
      },
      any_of(words));
  return *this;
}

template <class T>
ParserOption ParserOption::in_range(T least, T most) const {
  option_->description(fmt::format("{} ({} to {})", option_->get_description(), least, most));
  check_word(
      *option_,
      [least, most](const std::string& word) {
        const auto value = number_of<T>(word);
        return value && least <= *value && *value <= most;
      },
      fmt::format("a number from {} to {}", least, most));
  return *this;
}
template ParserOption ParserOption::in_range(int, int) const;
template ParserOption ParserOption::in_range(double, double) const;

ParserOption ParserOption::positive() const {
  check_word(
      *option_,
      [](const std::string& word) {
        std::uint64_t value = 0;
        return CLI::detail::lexical_cast(word, value) && value > 0;
      },
      "a number above 0");
  return *this;
}

ParserOption ParserOption::as_size() const {
  option_->type_name("SIZE");
  option_->transform(CLI::Validator(
      [](std::string& text) {
        std::string size = text;
        try {
          if (CLI::AsSizeValue(false)(size).empty()) {
            text = size;
            return std::string();
          }
        } catch (const CLI::ValidationError&) {  // of a number that is too large
        }
        return "expected a size such as 64K or 2G, found " + text;
      },
      ""));
  return *this;
}

ParserOption ParserOption::needs(ParserOption other) const {
  option_->needs(other.option_);
  return *this;
}

ParserOption ParserOption::excludes(ParserOption other) const {
  option_->excludes(other.option_);
  return *this;
}

std::size_t ParserOption::count() const { return option_->count(); }
std::string ParserOption::text() const { return option_->as<std::string>(); }

template <class T>
ParserOption CommandParser::add_option(const std::string& names, T& variable,
                                       const std::string& text) const {
  CLI::Option& option = *command_->add_option(names, variable, text);
  describe_value<T>(option);
  return ParserOption(option);
}
using Text = const std::string&;
template ParserOption CommandParser::add_option(Text, std::string&, Text) const;
template ParserOption CommandParser::add_option(Text, std::vector<std::string>&, Text) const;
template ParserOption CommandParser::add_option(Text, int&, Text) const;
template ParserOption CommandParser::add_option(Text, double&, Text) const;
template ParserOption CommandParser::add_option(Text, std::uint32_t&, Text) const;
template ParserOption CommandParser::add_option(Text, std::uint64_t&, Text) const;
template ParserOption CommandParser::add_option(Text, std::optional<std::uint16_t>&, Text) const;
template ParserOption CommandParser::add_option(Text, std::optional<std::uint32_t>&, Text) const;
template ParserOption CommandParser::add_option(Text, std::optional<std::uint64_t>&, Text) const;

ParserOption CommandParser::add_flag(const std::string& names, bool& variable,
                                     const std::string& text) const {
  return ParserOption(*command_->add_flag(names, variable, text));
}

ParserOption CommandParser::on_option(const std::string& names,
                                      const std::function<void(const std::string&)>& take,
                                      const std::string& text) const {
  CLI::Option& option = *command_->add_option_function<std::string>(names, take, text);
  describe_value<std::string>(option);
  return ParserOption(option);
}

ParserOption CommandParser::on_flag(const std::string& names, const std::function<void()>& act,
                                    const std::string& text) const {
  return ParserOption(*command_->add_flag_callback(names, act, text));
}

void CommandParser::take_anything() const { command_->allow_extras()->prefix_command(); }

ParserOption CommandParser::option(const std::string& name) const {
  return ParserOption(*command_->get_option(name));
}

}  // namespace citcat
