#include "tools/host/window_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <string_view>

#include "formats/io/error.h"
#include "formats/io/input.h"
#include "tools/host/window_words.h"

namespace citcat::tools {

namespace {

constexpr std::pair<const char*, Counted> kWords[] = {
    {"instructions", Counted::instructions}, {"branches", Counted::branches},
    {"calls", Counted::calls},               {"returns", Counted::returns},
    {"interrupts", Counted::interrupts},     {"exceptions", Counted::exceptions},
    {"syscalls", Counted::syscalls},         {"switches", Counted::switches}};

constexpr std::string_view kFile = "file:", kControl = "control:", kNothing = "none";
constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 26;

WindowPlan::Count count_in(WindowWords& words) {
  WindowPlan::Count c;
  const std::string text = words.next();
  c.number = WindowWords::number(text);
  if (c.number == 0) WindowWords::refuse("a number above 0", text);
  for (const auto& [word, what] : kWords) {
    if (words.take(word)) {
      c.what = what;
      break;
    }
  }
  return c;
}

using Range = std::pair<std::uint64_t, std::uint64_t>;

/// FROM-TO, behind those before.
void add_range(const std::string& word, std::vector<Range>& ranges) {
  const std::size_t dash = word.find('-');
  if (dash == std::string::npos) WindowWords::refuse("every, random, file:, control: or FROM-TO", word);
  const std::uint64_t from = WindowWords::number(word.substr(0, dash));
  const bool is_open = dash + 1 == word.size();
  const std::uint64_t to = is_open ? WindowPlan::kNone : WindowWords::number(word.substr(dash + 1));
  if (to <= from) WindowWords::refuse("FROM-TO, not empty", word);
  if (!ranges.empty() && from < ranges.back().second) {
    WindowWords::refuse("windows in their order", word);
  }
  ranges.emplace_back(from, to);
}

/// The first range that does not end before.
std::vector<Range>::const_iterator range_at(const std::vector<Range>& ranges, std::uint64_t instruction) {
  return std::upper_bound(ranges.begin(), ranges.end(), instruction,
                          [](std::uint64_t n, const Range& range) { return n < range.second; });
}

std::vector<Range> random_ranges(WindowWords& words, std::uint64_t end) {
  const std::uint64_t count = words.number();
  words.expect("of");
  const std::uint64_t length = words.number();
  words.expect("seed");
  const std::uint64_t seed = words.number();
  words.expect_end();
  const std::uint64_t slots = length != 0 ? end / length : 0;
  if (count == 0 || count > slots) {
    throw UsageError("--window: the run has no room for so many windows of that length");
  }
  // Drawn without bias by the engine alone: distributions differ between libraries.
  std::mt19937_64 random(seed);
  std::set<std::uint64_t> begins;
  while (begins.size() < count) begins.insert(random() % slots * length);
  std::vector<Range> ranges;
  for (const std::uint64_t b : begins) ranges.emplace_back(b, b + length);
  return ranges;
}

}  // namespace

WindowPlan WindowPlan::controlled(const std::string& text) {
  constexpr std::string_view kTo = " to ";
  const std::size_t to = text.rfind(kTo);
  const std::string pipe = text.substr(0, to);
  const std::string decisions =
      to == std::string::npos ? pipe + ".windows" : text.substr(to + kTo.size());
  if (pipe.empty() || decisions.empty()) WindowWords::refuse("control:PIPE [to FILE]", text);
  WindowPlan plan;
  plan.control_ = std::make_shared<WindowControl>(pipe, decisions);
  return plan;
}

std::string WindowPlan::with_file(const std::string& text) {
  if (!text.starts_with(kFile)) return text;
  const std::string path = text.substr(kFile.size());
  const std::vector<std::uint8_t> bytes = read_whole_file(path, kMaxFile);
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<Range> ranges;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    const std::string line(content.substr(at, end - at));
    try {
      WindowWords words(line.substr(0, line.find('#')));
      while (!words.peek().empty()) {
        if (!words.take(",")) add_range(words.next(), ranges);
      }
    } catch (const UsageError&) {
      throw FormatError(path, at, "expected FROM-TO behind the window before, found \"" + line + "\"");
    }
    at = end + 1;
  }
  std::string windows;
  for (const auto& [from, to] : ranges) {
    if (!windows.empty()) windows += ',';
    windows += fmt::format("{}-", from);
    if (to != kNone) windows += std::to_string(to);
  }
  return windows.empty() ? std::string(kNothing) : windows;
}

WindowPlan WindowPlan::parse(const std::string& text, std::uint64_t end) {
  if (text.starts_with(kControl)) return controlled(text.substr(kControl.size()));
  WindowPlan plan;
  if (text == kNothing) return plan;
  WindowWords words(text);
  if (words.take("every")) {
    plan.opens_ = count_in(words);
    words.expect("for");
    plan.closes_ = count_in(words);
    words.expect_end();
    if (plan.by_position() && plan.closes_.number > plan.opens_.number) {
      WindowWords::refuse("windows that are no longer than their distance", text);
    }
    return plan;
  }
  if (words.take("random")) {
    plan.ranges_ = random_ranges(words, end);
    return plan;
  }
  for (;;) {
    add_range(words.next(), plan.ranges_);
    if (words.peek().empty()) return plan;
    words.expect(",");
  }
}

bool WindowPlan::has(std::uint64_t instruction) const {
  if (control_) return control_->has(instruction);
  if (opens_.number != 0) return instruction % opens_.number < closes_.number;
  const auto at = range_at(ranges_, instruction);
  return at != ranges_.end() && at->first <= instruction;
}

std::uint64_t WindowPlan::next_edge(std::uint64_t instruction) const {
  if (control_) return control_->next_edge(instruction);
  if (opens_.number != 0) {
    const std::uint64_t begin = instruction - instruction % opens_.number;
    if (opens_.number == closes_.number) return kNone;
    return has(instruction) ? begin + closes_.number : begin + opens_.number;
  }
  const auto at = range_at(ranges_, instruction);
  if (at == ranges_.end()) return kNone;
  return instruction < at->first ? at->first : at->second;
}

}  // namespace citcat::tools
