#include "formats/captures/vcd.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/captures/bit_range.h"
#include "formats/captures/sample_buffer.h"
#include "formats/captures/table_times.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

bool ends_with_digit(std::string_view text) {
  return !text.empty() && text.back() >= '0' && text.back() <= '9';
}

/// Words separated by white space, with the number of their line.
class WordReader {
 public:
  explicit WordReader(std::unique_ptr<InputStream> input) : lines_(std::move(input)) {}

  bool next(std::string_view& word) {
    for (;;) {
      const auto begin = rest_.find_first_not_of(" \t\f\v");
      if (begin != std::string_view::npos) {
        rest_.remove_prefix(begin);
        const auto end = std::min(rest_.find_first_of(" \t\f\v"), rest_.size());
        word = rest_.substr(0, end);
        rest_.remove_prefix(end);
        return true;
      }
      if (!lines_.next(rest_)) return false;
    }
  }
  std::string_view expect(const char* what) {
    std::string_view word;
    if (!next(word)) lines_.fail(std::string("expected ") + what + ", found the end of the file");
    return word;
  }
  const LineReader& lines() const { return lines_; }
  [[noreturn]] void fail(const std::string& message) const { lines_.fail(message); }

 private:
  LineReader lines_;
  std::string_view rest_;
};

/// "1ns", "10 us", "0.5 fs" in seconds; 0 for anything else. The standard knows 1, 10 and 100
/// (IEEE 1364-2005, 18.2.3.6); programs for analysers write any number.
double parse_timescale(std::string_view text) {
  const auto unit = std::min(text.find_first_not_of("0123456789.,+-eE"), text.size());
  if (unit == text.size()) return 0;
  return parse_time(text, 0).value_or(0);
}

/// The bit that a digit stands for: of four values (18.2.1), and of the nine that VHDL has (IEEE
/// 1164, table 1).
enum class Bit : std::uint8_t { low, high, unknown, none };

Bit bit_of(char digit) {
  switch (digit) {
    case '0':
    case 'L':
    case 'l':
      return Bit::low;
    case '1':
    case 'H':
    case 'h':
      return Bit::high;
    case 'x':
    case 'X':
    case 'z':
    case 'Z':
    case 'u':
    case 'U':
    case 'w':
    case 'W':
    case '-':
      return Bit::unknown;
    default:
      return Bit::none;
  }
}

/// A time after '#'. In whole units, and what is left of one.
struct VcdTime {
  bool negative = false;
  std::uint64_t units = 0;
  double fraction = 0;
};

std::optional<VcdTime> parse_vcd_time(std::string_view text) {
  VcdTime time;
  if (!text.empty() && text.front() == '-') {
    time.negative = true;
    text.remove_prefix(1);
  }
  if (parse_decimal(text, time.units)) return time;
  constexpr double kMost = 9e18;
  if (text.find_first_not_of("0123456789.,eE+-") != std::string_view::npos) return std::nullopt;
  const auto value = parse_time(text, 1);
  if (!value || *value < 0 || *value > kMost) return std::nullopt;
  time.units = static_cast<std::uint64_t>(*value);
  time.fraction = *value - static_cast<double>(time.units);
  return time;
}

class VcdSource final : public SampleSource {
 public:
  explicit VcdSource(std::unique_ptr<InputStream> input) : words_(std::move(input)) {
    info_.name = words_.lines().name();
    read_header();
    info_.unit_bytes = (info_.channels.size() + 7) / 8;
    sample_.resize(info_.unit_bytes);
    buffer_ = SampleBuffer(info_.unit_bytes, true);
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    buffer_.clear();
    std::string_view word;
    while (!buffer_.full()) {
      if (!words_.next(word)) {
        flush_time();
        break;
      }
      read_change(word);
    }
    if (buffer_.empty()) return false;
    out = buffer_.take();
    return true;
  }

  std::vector<std::string> warnings() const override {
    std::vector<std::string> warnings;
    if (unknown_ != 0) {
      warnings.push_back(std::to_string(unknown_) + " levels are x or z: they read as 0");
    }
    if (fractions_ != 0) {
      warnings.push_back(std::to_string(fractions_) +
                         " times are fractions of a unit: sample numbers are rounded");
    }
    if (offs_ != 0) {
      warnings.push_back("the dump was off " + std::to_string(offs_) +
                         (offs_ == 1 ? " time" : " times") +
                         " ($dumpoff): what happened meanwhile is not known");
    }
    if (words_.lines().is_open_end()) {
      warnings.push_back(info_.name + ": the last line has no end: the file may be cut");
    }
    return warnings;
  }

 private:
  /// Channels of one identifier; an identifier may have several names.
  struct Variable {
    std::size_t bits = 0;
    std::vector<std::size_t> first_channels;  ///< channel of bit 0
  };

  void read_header() {
    for (;;) {
      const std::string word(words_.expect("$enddefinitions"));
      if (word == "$enddefinitions") break;
      if (word == "$var") {
        read_variable();
      } else if (word == "$scope") {
        words_.expect("a kind of scope");
        scopes_.emplace_back(words_.expect("the name of the scope"));
        if (scopes_.size() > kMaxScopes) words_.fail("expected fewer nested scopes");
        skip_to_end();
      } else if (word == "$upscope") {
        if (scopes_.empty()) words_.fail("expected an open scope, found '$upscope' without one");
        scopes_.pop_back();
        skip_to_end();
      } else if (word == "$timescale") {
        timescale_ = parse_timescale(text_to_end());
        if (timescale_ <= 0) words_.fail("expected a time scale like '1 ns'");
      } else if (word == "$comment") {
        read_comment(text_to_end());
      } else if (word.size() > 1 && word[0] == '$') {
        skip_to_end();
      } else {
        words_.fail("expected a declaration, found '" + shown(word) + "'");
      }
    }
    skip_to_end();
    if (info_.channels.empty()) words_.fail("expected at least one variable, found none");
  }

  void read_variable() {
    const std::string type(words_.expect("the type of the variable"));
    std::uint64_t bits = 0;
    const std::string size(words_.expect("the size of the variable"));
    if (!parse_decimal(size, bits) || bits == 0)
      words_.fail("expected the size of a variable in bits, found '" + shown(size) + "'");
    const std::string id(words_.expect("the identifier of the variable"));
    std::string name(words_.expect("the name of the variable"));
    name += text_to_end();
    if (type == "real" || type == "realtime" || type == "string") return;
    if (info_.channels.size() + bits > kMaxChannels)
      words_.fail("expected at most " + std::to_string(kMaxChannels) + " bits in all");
    add_channels(id, name, bits);
  }

  void add_channels(const std::string& id, std::string name, std::size_t bits) {
    Variable& variable = variables_[id];
    if (variable.bits != 0 && variable.bits != bits)
      words_.fail("expected all variables with identifier '" + id + "' to have one size");
    variable.bits = bits;
    variable.first_channels.push_back(info_.channels.size());
    // "[7:0]" after a name gives its bits; "[3]" after a single one belongs to its name, unless the
    // name has that number already: "AD0 [0]".
    const auto range = bracketed_range(name);
    const auto bracket = name.find('[');
    if (range) {
      name = range->stem;
    } else if (bits == 1 && bracket != std::string::npos && bracket != 0 &&
               ends_with_digit(name.substr(0, bracket))) {
      name.resize(bracket);
    }
    for (std::size_t i = 0; i < bits; ++i) {
      const std::uint64_t number = !range                  ? i
                                   : range->bits() == bits ? range->number(i)
                                                           : range->lowest + i;
      std::string channel = bits == 1 ? name : name + std::to_string(number);
      if (!names_.insert(channel).second && !scopes_.empty())
        channel = scopes_.back() + "." + channel;
      info_.channels.push_back(channel);
    }
  }

  /// libsigrok: "Acquisition with 33/33 channels at 9.52381 MHz".
  void read_comment(const std::string& text) {
    const auto at = text.rfind(" at ");
    if (text.compare(0, 11, "Acquisition") == 0 && at != std::string::npos)
      info_.sample_rate_hz = parse_sample_rate(text.substr(at + 4));
  }

  std::string text_to_end() {
    std::string text;
    for (;;) {
      const std::string_view word = words_.expect("$end");
      if (word == "$end") return text;
      if (text.size() > kMaxText) words_.fail("expected $end, found a very long text");
      if (!text.empty()) text += ' ';
      text += word;
    }
  }
  void skip_to_end() {
    while (words_.expect("$end") != "$end") {
    }
  }

  void read_change(std::string_view word) {
    switch (word[0]) {
      case '#':
        read_time(word.size() > 1 ? word.substr(1) : words_.expect("a time after '#'"));
        return;
      case 'b':
      case 'B': {
        vector_.assign(word.substr(1));
        set_value(words_.expect("the identifier of a vector"), vector_);
        return;
      }
      case 'r':
      case 'R':
      case 's':
      case 'S':
        words_.expect("the identifier of a value");
        return;
      case '$':
        read_keyword(word);
        return;
      default:
        break;
    }
    if (bit_of(word[0]) == Bit::none)
      words_.fail("expected a time or a value change, found '" + shown(word) + "'");
    const std::string value(1, word[0]);
    set_value(word.size() > 1 ? word.substr(1) : words_.expect("an identifier after the value"),
              value);
  }

  /// $dumpvars, $dumpall and $dumpon enclose ordinary changes. $dumpoff encloses x for everything
  /// (IEEE 1364-2005, 18.1.3): the levels are not known until $dumpon, and no change is shown.
  void read_keyword(std::string_view word) {
    if (word == "$comment") {
      skip_to_end();
    } else if (word == "$dumpoff") {
      skip_to_end();
      ++offs_;
    }
  }

  void read_time(std::string_view text) {
    const std::optional<VcdTime> found = parse_vcd_time(text);
    if (!found) words_.fail("expected a time after '#', found '" + shown(text) + "'");
    if (found->fraction != 0) ++fractions_;
    // Times before a trigger are negative: the first one is then number 0.
    if (!has_time_ && found->negative) before_zero_ = found->units;
    const std::uint64_t time = found->negative ? before_zero_ - std::min(found->units, before_zero_)
                                               : before_zero_ + found->units;
    if (has_time_ && (time < time_ || (time == time_ && found->fraction < fraction_) ||
                      (found->negative && found->units > before_zero_)))
      words_.fail("expected times to rise, found " + shown(text) + " after " + last_time_);
    if (has_time_ && (time != time_ || found->fraction != fraction_)) flush_time();
    time_ = time;
    fraction_ = found->fraction;
    last_time_.assign(text);
    has_time_ = true;
  }

  void set_value(std::string_view id, std::string_view bits) {
    key_.assign(id);
    const auto it = variables_.find(key_);
    if (it == variables_.end())
      words_.fail("expected the identifier of a variable, found '" + shown(key_) + "'");
    const Variable& variable = it->second;
    if (bits.empty() || bits.size() > variable.bits)
      words_.fail("expected up to " + std::to_string(variable.bits) + " bits, found " +
                  std::to_string(bits.size()));
    for (std::size_t i = 0; i < variable.bits; ++i) {
      // Shorter values are extended: with 0, or with x or z when they begin so (IEEE 1364 18.2.1).
      Bit bit = bit_of(i < bits.size() ? bits[bits.size() - 1 - i] : bits[0]);
      if (bit == Bit::none) words_.fail("expected bits 0, 1, x or z, found '" + shown(bits) + "'");
      if (i >= bits.size() && bit == Bit::high) bit = Bit::low;
      if (bit == Bit::unknown) ++unknown_;
      for (const std::size_t first : variable.first_channels)
        set_level(sample_, first + i, bit == Bit::high);
    }
    changed_ = true;
  }

  /// The changes of one time are complete: they are a sample.
  void flush_time() {
    if (!changed_) return;
    changed_ = false;
    const double scaled = info_.sample_rate_hz > 0
                              ? std::round((static_cast<double>(time_) + fraction_) * timescale_ *
                                           info_.sample_rate_hz)
                              : 0;
    std::uint64_t number =
        info_.sample_rate_hz > 0 && scaled < 9e18 ? static_cast<std::uint64_t>(scaled) : time_;
    if (any_ && number <= number_) number = number_ + 1;
    number_ = number;
    any_ = true;
    buffer_.add(sample_, number);
  }

  static constexpr std::size_t kMaxScopes = 256;
  static constexpr std::size_t kMaxText = 65536;

  WordReader words_;
  SampleInfo info_;
  std::vector<std::string> scopes_;
  std::unordered_map<std::string, Variable> variables_;
  std::unordered_set<std::string> names_;
  double timescale_ = 1e-9;
  std::vector<std::uint8_t> sample_;
  SampleBuffer buffer_{1, true};
  std::string vector_, key_;
  std::uint64_t time_ = 0, number_ = 0, unknown_ = 0;
  double fraction_ = 0;            ///< of a unit, after time_
  std::uint64_t before_zero_ = 0;  ///< how far below zero the first time is
  std::string last_time_;          ///< as written
  std::uint64_t fractions_ = 0, offs_ = 0;
  bool has_time_ = false, changed_ = false, any_ = false;
};

}  // namespace

std::unique_ptr<SampleSource> open_vcd(std::unique_ptr<InputStream> input) {
  return std::make_unique<VcdSource>(std::move(input));
}

}  // namespace citcat
