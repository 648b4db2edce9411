#include "tools/host/window_plan.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <sstream>

#include "formats/io/error.h"

namespace citcat::tools {

namespace {

constexpr std::pair<const char*, Counted> kWords[] = {
    {"instructions", Counted::instructions}, {"branches", Counted::branches},
    {"calls", Counted::calls},               {"returns", Counted::returns},
    {"interrupts", Counted::interrupts},     {"exceptions", Counted::exceptions},
    {"syscalls", Counted::syscalls},         {"switches", Counted::switches}};

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
  throw UsageError("--window: expected " + expected + ", found " +
                   (found.empty() ? "the end" : "\"" + found + "\""));
}

std::uint64_t number(const std::string& text) {
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

/// Words between blanks; a comma is one.
class Words {
 public:
  explicit Words(const std::string& text) {
    std::string spaced;
    for (const char c : text) spaced += c == ',' ? std::string(" , ") : std::string(1, c);
    std::istringstream in(spaced);
    for (std::string word; in >> word;) words_.push_back(word);
  }
  std::string peek() const { return at_ < words_.size() ? words_[at_] : ""; }
  std::string next() {
    const std::string word = peek();
    if (at_ < words_.size()) ++at_;
    return word;
  }
  void expect(const char* word) {
    if (const std::string found = next(); found != word) refuse(word, found);
  }
  void expect_end() const {
    if (at_ != words_.size()) refuse("the end", peek());
  }
  WindowPlan::Count count() {
    WindowPlan::Count c;
    const std::string text = next();
    c.number = number(text);
    if (c.number == 0) refuse("a number above 0", text);
    for (const auto& [word, what] : kWords) {
      if (peek() != word) continue;
      c.what = what;
      next();
      break;
    }
    return c;
  }

 private:
  std::vector<std::string> words_;
  std::size_t at_ = 0;
};

}  // namespace

WindowPlan WindowPlan::parse(const std::string& text, std::uint64_t end) {
  WindowPlan plan;
  Words words(text);
  if (words.peek() == "every") {
    words.next();
    plan.opens_ = words.count();
    words.expect("for");
    plan.closes_ = words.count();
    words.expect_end();
    if (plan.by_position() && plan.closes_.number > plan.opens_.number) {
      refuse("windows that are no longer than their distance", text);
    }
    return plan;
  }
  if (words.peek() == "random") {
    words.next();
    const std::uint64_t count = number(words.next());
    words.expect("of");
    const std::uint64_t length = number(words.next());
    words.expect("seed");
    const std::uint64_t seed = number(words.next());
    words.expect_end();
    const std::uint64_t slots = length != 0 ? end / length : 0;
    if (count == 0 || count > slots) {
      throw UsageError("--window: the run has no room for so many windows of that length");
    }
    // Drawn without bias by the engine alone: distributions differ between libraries.
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> begins;
    while (begins.size() < count) {
      const std::uint64_t slot = random() % slots * length;
      if (std::find(begins.begin(), begins.end(), slot) == begins.end()) begins.push_back(slot);
    }
    std::sort(begins.begin(), begins.end());
    for (const std::uint64_t b : begins) plan.ranges_.emplace_back(b, b + length);
    return plan;
  }
  for (;;) {
    const std::string word = words.next();
    const std::size_t dash = word.find('-');
    if (dash == std::string::npos) refuse("every, random or FROM-TO", word);
    const std::uint64_t from = number(word.substr(0, dash)), to = number(word.substr(dash + 1));
    if (to <= from) refuse("FROM-TO, not empty", word);
    if (!plan.ranges_.empty() && from < plan.ranges_.back().second) {
      refuse("windows in their order", word);
    }
    plan.ranges_.emplace_back(from, to);
    if (words.peek().empty()) return plan;
    words.expect(",");
  }
}

bool WindowPlan::has(std::uint64_t instruction) const {
  if (opens_.number != 0) return instruction % opens_.number < closes_.number;
  const auto at = std::upper_bound(
      ranges_.begin(), ranges_.end(), instruction,
      [](std::uint64_t n, const auto& range) { return n < range.second; });
  return at != ranges_.end() && at->first <= instruction;
}

std::uint64_t WindowPlan::next_edge(std::uint64_t instruction) const {
  if (opens_.number != 0) {
    const std::uint64_t begin = instruction - instruction % opens_.number;
    if (opens_.number == closes_.number) return kNone;
    return has(instruction) ? begin + closes_.number : begin + opens_.number;
  }
  for (const auto& [from, to] : ranges_) {
    if (instruction < from) return from;
    if (instruction < to) return to;
  }
  return kNone;
}

}  // namespace citcat::tools
