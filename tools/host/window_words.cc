#include "tools/host/window_words.h"

#include <charconv>
#include <sstream>

#include "formats/io/error.h"

namespace citcat::tools {

WindowWords::WindowWords(const std::string& text) {
  std::string spaced;
  for (const char c : text) spaced += c == ',' ? std::string(" , ") : std::string(1, c);
  std::istringstream in(spaced);
  for (std::string word; in >> word;) words_.push_back(word);
}

std::string WindowWords::next() {
  std::string word = peek();
  if (at_ < words_.size()) ++at_;
  return word;
}

bool WindowWords::take(const std::string& word) {
  if (peek() != word) return false;
  next();
  return true;
}

void WindowWords::expect(const std::string& word) {
  if (const std::string found = next(); found != word) refuse(word, found);
}

void WindowWords::expect_end() const {
  if (at_ != words_.size()) refuse("the end", peek());
}

std::uint64_t WindowWords::number() { return number(next()); }

std::uint64_t WindowWords::number(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop == text.data() || end - stop > 1) refuse("a number", text);
  std::uint64_t unit = 1;
  if (stop != end) {
    unit = *stop == 'k' ? 1'000 : *stop == 'M' ? 1'000'000 : *stop == 'G' ? 1'000'000'000 : 0;
    if (unit == 0 || value > ~std::uint64_t{0} / unit) refuse("a number with k, M or G", text);
  }
  return value * unit;
}

void WindowWords::refuse(const std::string& expected, const std::string& found) {
  throw UsageError("expected " + expected + ", found " +
                   (found.empty() ? "the end" : "\"" + found + "\""));
}

}  // namespace citcat::tools
