#pragma once
// How a command says which options and arguments it has. CLI11 parses them, hidden behind this
// interface: a file that includes CLI11's headers takes six seconds longer to compile, and every
// command would be such a file.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace citcat {

/// A handle for an option, flag or argument of a CommandParser; valid as long as the parser.
class ParserOption {
 public:
  explicit ParserOption(CLI::Option& option) : option_(&option) {}

  ParserOption required() const;
  /// What stands for its value in help: kFileType, "N", type_of(choices).
  ParserOption type_name(const std::string& name) const;
  /// It may be given more than once, with one value each time.
  ParserOption repeated() const;
  /// Help shows the value that its variable has now.
  ParserOption show_default() const;
  /// Refuses any other word.
  ParserOption one_of(const std::vector<std::string>& words) const;
  /// Refuses what is less or greater. `T` is int or double.
  template <class T>
  ParserOption in_range(T least, T most) const;
  ParserOption positive() const;
  /// A number of bytes: 64K, 2G, powers of 1,024.
  ParserOption as_size() const;
  /// It is of no use without that one, or beside it.
  ParserOption needs(ParserOption other) const;
  ParserOption excludes(ParserOption other) const;

  /// After parsing: how often it was given, and the value as it was written.
  std::size_t count() const;
  std::string text() const;

 private:
  CLI::Option* option_;
};

/// The options of one command. `names`: "-o,--output" of an option, "FILE" of an argument, which
/// goes by its place; `text` explains it in help. Variables must outlive the parsing.
class CommandParser {
 public:
  explicit CommandParser(CLI::App& command) : command_(&command) {}

  /// `T`: std::string, int, double, std::uint32_t, std::uint64_t, an optional of an unsigned type,
  /// a vector of strings (see command_parser.cc).
  template <class T>
  ParserOption add_option(const std::string& names, T& variable, const std::string& text) const;
  ParserOption add_flag(const std::string& names, bool& variable, const std::string& text) const;
  /// `take` is called with the value while the command line is parsed.
  ParserOption on_option(const std::string& names,
                         const std::function<void(const std::string&)>& take,
                         const std::string& text) const;
  ParserOption on_flag(const std::string& names, const std::function<void()>& act,
                       const std::string& text) const;
  /// Whatever else is on the command line is accepted and left alone.
  void take_anything() const;
  /// One that was added.
  ParserOption option(const std::string& name) const;

 private:
  CLI::App* command_;
};

}  // namespace citcat
