#pragma once
// "NAME" or "NAME:key=value,key=value": a tool on the command line with its options.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace citcat::tools {

/// Each reader marks its key as known; finish() refuses the others. A key without "=" is "yes".
class ToolOptions {
 public:
  /// `option` is the one whose value `text` is, for messages. Throws UsageError for what is not of
  /// that form, and for a key twice.
  static ToolOptions parse(const std::string& text, const char* option = "--tool");

  const std::string& tool() const { return tool_; }
  /// As it was given.
  const std::string& text() const { return text_; }

  /// All throw UsageError where the value is not what is wanted. `fallback`: without the key.
  std::uint64_t number(const std::string& key, std::uint64_t fallback, std::uint64_t least,
                       std::uint64_t most);
  /// A power of two within the bounds.
  std::uint64_t power_of_two(const std::string& key, std::uint64_t fallback, std::uint64_t least,
                             std::uint64_t most);
  /// Several of them, separated by "+", each once.
  std::vector<std::uint64_t> powers_of_two(const std::string& key, std::uint64_t fallback,
                                           std::uint64_t least, std::uint64_t most);
  std::string text(const std::string& key, const std::string& fallback);
  std::string one_of(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& choices);
  /// Separated by "+".
  std::vector<std::string> list(const std::string& key);
  bool flag(const std::string& key);
  /// All keys are read by somebody else, who refuses what must be refused.
  void leave_to_other();
  /// Throws UsageError for keys that nobody asked for.
  void finish() const;

 private:
  std::optional<std::string> take(const std::string& key);
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;

  std::string option_, text_, tool_;
  std::map<std::string, std::string> values_;
  std::set<std::string> known_;
};

}  // namespace citcat::tools
