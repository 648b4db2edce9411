#include "cli/parsing/command_parser.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

namespace citcat {

ParserOption ParserOption::required() const {
  option_->required();
  return *this;
}

ParserOption ParserOption::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

ParserOption ParserOption::repeated() const {
  option_->expected(1)->take_all();
  return *this;
}

ParserOption ParserOption::show_default() const {
  option_->capture_default_str();
  return *this;
}

ParserOption ParserOption::one_of(const std::vector<std::string>& words) const {
  option_->check(CLI::IsMember(words));
  return *this;
}

template <class T>
ParserOption ParserOption::in_range(T least, T most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}
template ParserOption ParserOption::in_range(int, int) const;
template ParserOption ParserOption::in_range(double, double) const;

ParserOption ParserOption::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

ParserOption ParserOption::as_size() const {
  option_->transform(CLI::AsSizeValue(false));
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
  return ParserOption(*command_->add_option(names, variable, text));
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
  return ParserOption(*command_->add_option_function<std::string>(names, take, text));
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
