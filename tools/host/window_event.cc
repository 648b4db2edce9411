#include "tools/host/window_event.h"

#include <algorithm>
#include <charconv>

namespace citcat::tools {

namespace {

/// Whether a value is after the word.
enum class Value : std::uint8_t { none, perhaps, always };

struct Word {
  const char* word;
  Counted what;
  Value value;
};

constexpr Word kWords[] = {
    {"instructions", Counted::instructions, Value::none},
    {"branches", Counted::branches, Value::none},
    {"calls", Counted::calls, Value::none},
    {"returns", Counted::returns, Value::none},
    {"switches", Counted::switches, Value::none},
    {"interrupts", Counted::interrupts, Value::perhaps},
    {"exceptions", Counted::exceptions, Value::perhaps},
    {"syscalls", Counted::syscalls, Value::perhaps},
    {"procedure", Counted::procedures, Value::always},
    {"process", Counted::processes, Value::always},
    {"write", Counted::writes, Value::always},
    {"port", Counted::ports, Value::always},
};

constexpr std::uint32_t kMostVector = 255, kMostPort = 0xffff;

std::uint32_t number(const std::string& text, std::uint32_t most) {
  const bool hex = text.starts_with("0x");
  const char* const end = text.data() + text.size();
  std::uint64_t value = 0;
  const auto [stop, error] =
      std::from_chars(text.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);
  if (error != std::errc{} || stop != end || value > most) {
    WindowWords::refuse("a number of at most " + std::to_string(most), text);
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace

WindowEvent WindowEvent::parse(WindowWords& words, const NameSource& names) {
  WindowEvent event;
  const std::string text = words.peek();
  const std::size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  const auto* const row = std::find_if(std::begin(kWords), std::end(kWords),
                                       [&](const Word& w) { return word == w.word; });
  if (row == std::end(kWords)) return event;
  words.next();
  event.what_ = row->what;
  const bool valued = colon != std::string::npos;
  if (valued ? row->value == Value::none : row->value == Value::always) {
    WindowWords::refuse(valued ? word : word + ":VALUE", text);
  }
  if (valued) event.take_value(word, text.substr(colon + 1), names);
  return event;
}

void WindowEvent::take_value(const std::string& word, const std::string& value,
                             const NameSource& names) {
  if (value.empty()) WindowWords::refuse(word + ":VALUE", word + ":");
  switch (what_) {
    case Counted::procedures:
      places_ = names.code(value);
      break;
    case Counted::writes:
      places_ = {parse_linear_range(value, "write:")};
      break;
    case Counted::processes:
      process_ = value;
      names_ = &names;
      break;
    case Counted::syscalls:
      value_ = number(value, ~0u);
      break;
    case Counted::ports:
      value_ = number(value, kMostPort);
      break;
    default:
      value_ = number(value, kMostVector);
  }
}

bool WindowEvent::has(const Happening& h) const {
  if (h.what != what_) return false;
  switch (what_) {
    case Counted::procedures:
      return std::any_of(places_.begin(), places_.end(),
                         [&](const LinearRange& p) { return p.begin == LinearAddr{h.value}; });
    case Counted::writes:
      return std::any_of(places_.begin(), places_.end(), [&](const LinearRange& p) {
        return p.begin < LinearAddr{h.value + h.size} && LinearAddr{h.value} < p.end;
      });
    case Counted::processes:
      return names_->is_process(process_, *h.context);
    default:
      return !value_ || h.value == *value_;
  }
}

}  // namespace citcat::tools
