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

constexpr std::string_view kFile = "file:", kControl = "control:", kNothing = "none";
constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 26;

WindowPlan::Count count_in(WindowWords& words, const NameSource& names) {
  WindowPlan::Count c;
  const std::string text = words.next();
  c.number = WindowWords::number(text);
  if (c.number == 0) WindowWords::refuse("a number above 0", text);
  c.event = WindowEvent::parse(words, names);
  return c;
}

/// ", warm W" at the end.
std::uint64_t warm_in(WindowWords& words) {
  if (!words.take(",")) return 0;
  words.expect("warm");
  return words.number();
}

using Range = std::pair<std::uint64_t, std::uint64_t>;

/// FROM-TO, after those before.
void add_range(const std::string& word, std::vector<Range>& ranges) {
  const std::size_t dash = word.find('-');
  if (dash == std::string::npos)
    WindowWords::refuse("every, from, random, file:, control: or FROM-TO", word);
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
std::vector<Range>::const_iterator range_at(const std::vector<Range>& ranges,
                                            std::uint64_t instruction) {
  return std::upper_bound(ranges.begin(), ranges.end(), instruction,
                          [](std::uint64_t n, const Range& range) { return n < range.second; });
}

std::vector<Range> random_ranges(WindowWords& words, std::uint64_t end) {
  const std::uint64_t count = words.number();
  words.expect("of");
  const std::uint64_t length = words.number();
  words.expect("seed");
  const std::uint64_t seed = words.number();
  const std::uint64_t slots = length != 0 ? end / length : 0;
  if (count == 0 || count > slots) {
    throw UsageError("the run has no room for so many windows of that length");
  }
  // By the engine alone, whose numbers are the same everywhere; distributions differ between
  // libraries. Of 2^64 numbers the remainder favours the first slots by less than slots / 2^64.
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
      throw FormatError(path, at,
                        "expected FROM-TO after the window before, found \"" + line + "\"");
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

void WindowPlan::read_every(WindowWords& words, const NameSource& names) {
  opens_ = count_in(words, names);
  words.expect("for");
  closes_[0] = count_in(words, names);
  opens_anew_ = true;
  counts_ = !opens_.event.is_instructions() || !closes_[0].event.is_instructions();
  if (!counts_ && closes_[0].number > opens_.number) {
    throw UsageError("expected windows that are no longer than their distance");
  }
}

void WindowPlan::read_from(WindowWords& words, const NameSource& names) {
  const auto event = [&] {
    Count c;
    c.number = 1;
    c.event = WindowEvent::parse(words, names);
    if (c.event.is_instructions()) WindowWords::refuse("an event", words.peek());
    return c;
  };
  counts_ = true;
  opens_ = event();
  if (words.take("until")) closes_[0] = event();
  if (words.take("for")) closes_[1] = count_in(words, names);
  if (closes_[0].number + closes_[1].number == 0) WindowWords::refuse("until or for", words.peek());
}

WindowPlan WindowPlan::parse(const std::string& text, std::uint64_t end, const NameSource& names) {
  if (text.starts_with(kControl)) return controlled(text.substr(kControl.size()));
  WindowPlan plan;
  if (text == kNothing) return plan;
  WindowWords words(text);
  if (words.take("every")) {
    plan.read_every(words, names);
  } else if (words.take("from")) {
    plan.read_from(words, names);
  } else if (words.take("random")) {
    plan.ranges_ = random_ranges(words, end);
  } else {
    add_range(words.next(), plan.ranges_);
    while (words.peek() == "," && words.peek(1) != "warm") {
      words.next();
      add_range(words.next(), plan.ranges_);
    }
  }
  plan.warm_ = warm_in(words);
  words.expect_end();
  if (plan.warm_ != 0 && plan.counts_) {
    throw UsageError(
        "windows that events open cannot be warmed up, because it is not known beforehand when "
        "they open");
  }
  return plan;
}

WindowPlan WindowPlan::parse_sample(const std::string& text, std::uint64_t end,
                                    const NameSource& names) {
  WindowPlan plan = parse(text, end, names);
  if (plan.is_controlled() || !plan.by_position()) {
    throw UsageError("expected windows of instructions, found \"" + text + "\"");
  }
  return plan;
}

WindowPlan::Share WindowPlan::share(std::uint64_t from, std::uint64_t to) const {
  Share all;
  for (std::uint64_t at = from; at < to;) {
    const std::uint64_t end = std::min(next_edge(at), to);
    if (has(at)) {
      ++all.windows;
      all.instructions += end - at;
    } else if (warms(at)) {
      all.warming += end - at;
    }
    at = end;
  }
  return all;
}

bool WindowPlan::counts(Counted what) const {
  const auto is = [&](const Count& c) { return c.number != 0 && c.event.what() == what; };
  return counts_ && (is(opens_) || is(closes_[0]) || is(closes_[1]));
}

bool WindowPlan::has(std::uint64_t instruction) const {
  if (control_) return control_->has(instruction);
  if (opens_.number != 0) return instruction % opens_.number < closes_[0].number;
  const auto at = range_at(ranges_, instruction);
  return at != ranges_.end() && at->first <= instruction;
}

bool WindowPlan::warms(std::uint64_t instruction) const {
  if (warm_ == 0 || has(instruction)) return false;
  const std::uint64_t begin = begin_behind(instruction);
  return begin != kNone && begin - instruction <= warm_;
}

/// The first instruction of the next window, outside of one.
std::uint64_t WindowPlan::begin_behind(std::uint64_t instruction) const {
  if (opens_.number != 0) return instruction - instruction % opens_.number + opens_.number;
  const auto at = range_at(ranges_, instruction);
  return at != ranges_.end() ? at->first : kNone;
}

/// The first one after the window that it is in.
std::uint64_t WindowPlan::end_of(std::uint64_t instruction) const {
  if (opens_.number != 0) {
    if (opens_.number == closes_[0].number) return kNone;
    return instruction - instruction % opens_.number + closes_[0].number;
  }
  return range_at(ranges_, instruction)->second;
}

std::uint64_t WindowPlan::next_edge(std::uint64_t instruction) const {
  if (control_) return control_->next_edge(instruction);
  if (has(instruction)) return end_of(instruction);
  const std::uint64_t begin = begin_behind(instruction);
  if (begin == kNone) return kNone;
  return begin - instruction > warm_ ? begin - warm_ : begin;
}

bool WindowCounter::count(const Happening& h) {
  const bool before = open_;
  const auto happens = [&](const WindowPlan::Count& c) { return c.number != 0 && c.event.has(h); };
  if (open_) {
    for (std::size_t i = 0; i < done_.size(); ++i) {
      const WindowPlan::Count& closes = plan_->closes()[i];
      if (!happens(closes)) continue;
      // So many instructions are told whole: the next one closes. Of other events the last does.
      const bool whole = closes.event.is_instructions();
      if (whole ? done_[i] == closes.number : done_[i] + 1 == closes.number) open_ = false;
      ++done_[i];
    }
  }
  const WindowPlan::Count& opens = plan_->opens();
  if ((!before || plan_->opens_anew()) && happens(opens) && ++seen_ >= opens.number) {
    seen_ = 0;
    for (std::size_t i = 0; i < done_.size(); ++i) {
      const bool counted = plan_->closes()[i].event.is_instructions() && h.is_of_instruction;
      done_[i] = counted ? 1 : 0;
    }
    open_ = true;
  }
  return open_ != before;
}

}  // namespace citcat::tools
