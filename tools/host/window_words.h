#pragma once
// The words that windows are written in.

#include <cstdint>
#include <string>
#include <vector>

namespace citcat::tools {

/// Words between blanks; a comma is one.
class WindowWords {
 public:
  explicit WindowWords(const std::string& text);

  /// The next one, or one after it; empty after the last.
  std::string peek(std::size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? words_[at_ + ahead] : "";
  }
  std::string next();
  bool take(const std::string& word);
  /// These throw UsageError where something else is there.
  void expect(const std::string& word);
  void expect_end() const;
  std::uint64_t number();

  /// A number of digits, perhaps with k, M or G for thousands, millions, thousands of millions.
  /// Throws UsageError.
  static std::uint64_t number(const std::string& text);
  [[noreturn]] static void refuse(const std::string& expected, const std::string& found);

 private:
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

}  // namespace citcat::tools
