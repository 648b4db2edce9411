#include "formats/captures/sample_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "formats/captures/sample_buffer.h"
#include "formats/io/error.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

constexpr std::string_view kBlanks = " \t";

/// Takes the next word off the front of `line`; empty when there is none.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

/// Takes the next field off the front of `line`, blanks at its ends and quotes removed; what stands
/// between quotes may hold separators (RFC 4180, 2.6). `last`: no separator follows.
std::string_view take_field(std::string_view& line, char separator, bool& last) {
  std::size_t from = 0;
  const std::size_t begin = line.find_first_not_of(separator == '\t' ? " " : kBlanks);
  if (begin != std::string_view::npos && line[begin] == '"') {
    const std::size_t quote = line.find('"', begin + 1);
    if (quote != std::string_view::npos) from = quote;
  }
  const std::size_t end = line.find(separator, from);
  std::string_view field = trimmed(line.substr(0, end));
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
    field = trimmed(field.substr(1, field.size() - 2));
  last = end == std::string_view::npos;
  line.remove_prefix(last ? line.size() : end + 1);
  return field;
}

/// Splits at commas (or semicolons or tabs, whichever the header has); a blank as the separator
/// stands for any number of them.
std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  if (separator == ' ') {
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line))
      fields.push_back(word);
    return fields;
  }
  for (bool last = false; !last;) fields.push_back(take_field(line, separator, last));
  return fields;
}

char separator_of(std::string_view line) {
  for (const char c : {',', '\t', ';'})
    if (line.find(c) != std::string_view::npos) return c;
  return trimmed(line).find(' ') != std::string_view::npos ? ' ' : ',';
}

bool begins_with(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

/// The unit that libsigrok heads its column of times with (output/csv.c of libsigrok 0.5.2), in
/// seconds; 0 for anything else.
double unit_of_times(std::string_view column) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"seconds", 1},
                                                                   {"milliseconds", 1e-3},
                                                                   {"microseconds", 1e-6},
                                                                   {"nanoseconds", 1e-9},
                                                                   {"picoseconds", 1e-12}};
  for (const auto& [name, seconds] : kUnits)
    if (column == name) return seconds;
  return 0;
}

/// "Time", "Time [s]", "Time(s)", "Timestamp", "Sample", "Line", "State Number": no channel.
bool names_a_position(std::string_view column) {
  const std::string name = lower(column);
  return begins_with(name, "time") || name == "sample" || name == "line" ||
         name == "sample number" || unit_of_times(name) != 0 || begins_with(name, "state number") ||
         name == "index";
}

/// The rule below the names of a printed table.
bool is_rule(std::string_view line) {
  return line.find_first_not_of("-=+| \t") == std::string_view::npos;
}

/// Printed tables write the unit of a time as a word of its own.
bool is_time_unit(std::string_view word) {
  static constexpr std::string_view kUnits[] = {"s", "ms", "us", "ns", "ps"};
  return std::find(std::begin(kUnits), std::end(kUnits), word) != std::end(kUnits);
}

double parse_real(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && std::isfinite(value)
             ? value
             : -1;
}

bool is_value(std::string_view field) {
  std::uint64_t value = 0;
  return parse_hexadecimal(field, value) || parse_real(field) >= 0;
}

/// Names that are also numbers (A, D0, BE) make a line of names when all begin with a letter and no
/// two are equal.
bool looks_like_names(const std::vector<std::string_view>& fields) {
  if (!std::all_of(fields.begin(), fields.end(), is_value)) return true;
  std::vector<std::string_view> sorted = fields;
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  return distinct && std::all_of(fields.begin(), fields.end(), [](std::string_view field) {
           return (field[0] >= 'A' && field[0] <= 'F') || (field[0] >= 'a' && field[0] <= 'f');
         });
}

class CsvSource final : public SampleSource {
 public:
  explicit CsvSource(std::unique_ptr<InputStream> input)
      : head_(head_of(*input)), lines_(std::move(input)) {
    info_.name = lines_.name();
    read_head();
    head_ = {};
    info_.unit_bytes = (info_.channels.size() + 7) / 8;
    sample_.resize(info_.unit_bytes);
    buffer_ = SampleBuffer(info_.unit_bytes, changes_only_);
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    buffer_.clear();
    while (!buffer_.full()) {
      if (!row_pending_ && !lines_.next(row_)) break;
      row_pending_ = false;
      if (trimmed(row_).empty() || row_[0] == ';' || row_[0] == '#') continue;
      if (separator_ == ' ') {
        read_words(row_);
      } else {
        read_row(row_);
      }
    }
    if (buffer_.empty()) return false;
    out = buffer_.take();
    return true;
  }

  std::vector<std::string> warnings() const override {
    if (left_out_.empty()) return {};
    return {"columns behind the text of column '" + columns_[text_column_].name +
            "' are left out, because words do not tell where it ends: " + left_out_};
  }

 private:
  struct Column {
    std::string name;
    bool time = false;  ///< of times or text: no channel
    std::size_t first_channel = 0;
    std::size_t bits = 0;
  };

  /// What the columns are judged by.
  static std::string head_of(InputStream& input) {
    constexpr std::size_t kHeadBytes = std::size_t{1} << 16;
    const auto head = input.peek(kHeadBytes);
    return {head.begin(), head.end()};
  }

  /// Comments, the line of column names if there is one, and the first row.
  void read_head() {
    std::vector<std::string> names;
    while (lines_.next(row_)) {
      if (trimmed(row_).empty()) continue;
      if (row_[0] == ';' || row_[0] == '#') {
        read_comment(row_);
        continue;
      }
      if (columns_.empty()) separator_ = separator_of(row_);
      if (separator_ == ' ' && is_rule(row_)) continue;
      const auto fields = split(row_, separator_);
      const bool header = columns_.empty() && looks_like_names(fields);
      if (!header) {
        first_row(fields);
        row_pending_ = true;
        return;
      }
      name_columns(fields);
    }
    lines_.fail("expected a table of samples, found no row of values");
  }

  void read_comment(std::string_view line) {
    if (line.find("DSView") != std::string_view::npos) changes_only_ = true;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string key = lower(trimmed(line.substr(1, colon - 1)));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "samplerate" || key == "sample rate") {
      info_.sample_rate_hz = parse_sample_rate(std::string(value));
    } else if (begins_with(key, "channels (") && value.find(',') != std::string_view::npos) {
      listed_.clear();
      for (const auto name : split(value, ',')) listed_.emplace_back(name);
    }
  }

  void name_columns(const std::vector<std::string_view>& fields) {
    if (fields.size() > kMaxChannels) lines_.fail("expected fewer columns");
    for (const auto field : fields) {
      Column column;
      column.name = std::string(field);
      column.time = names_a_position(field);
      columns_.push_back(column);
    }
    take_times(fields);
    // Saleae Logic 2 writes one row a change: "Time [s],Channel 0,...".
    if (columns_[0].time && lower(columns_[0].name) == "time [s]") changes_only_ = true;
    name_from_list();
  }

  /// libsigrok tells times where it is asked to (csv:time=true), and leaves out rows that are like
  /// the one before (csv:dedup=true): the times then tell which sample a row is. Behind the
  /// channels may stand whether the trigger was met.
  void take_times(const std::vector<std::string_view>& fields) {
    const double unit = unit_of_times(lower(fields.front()));
    if (unit == 0) return;
    if (info_.sample_rate_hz > 0) {
      seconds_per_unit_ = unit;
      changes_only_ = true;
    }
    if (columns_.back().name == "Trigger" && columns_.size() == listed_.size() + 2)
      columns_.back().time = true;
  }

  /// libsigrok's header may say nothing but "logic": its comment has the names.
  void name_from_list() {
    std::size_t unnamed = 0, channels = 0;
    for (const Column& column : columns_) {
      if (column.time) continue;
      ++channels;
      if (column.name == "logic") ++unnamed;
    }
    if (unnamed != channels || listed_.size() != channels) return;
    std::size_t i = 0;
    for (Column& column : columns_)
      if (!column.time) column.name = listed_[i++];
  }

  /// The first values tell how wide the columns are.
  void first_row(const std::vector<std::string_view>& fields) {
    if (columns_.empty()) {
      if (fields.size() > kMaxChannels) lines_.fail("expected fewer columns");
      for (std::size_t i = 0; i < fields.size(); ++i)
        columns_.push_back(
            {listed_.size() == fields.size() ? listed_[i] : std::to_string(i), false, 0, 0});
    }
    if (separator_ != ' ' && fields.size() != columns_.size())
      lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found " +
                  std::to_string(fields.size()));
    measure_columns(separator_ == ' ' ? align_words(fields) : fields);
    if (info_.channels.empty() || info_.channels.size() > kMaxChannels)
      lines_.fail("expected columns with 1 to " + std::to_string(kMaxChannels) +
                  " bits in all, found " + std::to_string(info_.channels.size()));
    time_column_ = !columns_[0].time ? -1 : 0;
    if (changes_only_ && time_column_ < 0)
      lines_.fail("expected a column of times in a file of changes, found none");
  }

  /// The words of a row as far as they can be told apart: a time may be two, text any number.
  std::vector<std::string_view> align_words(const std::vector<std::string_view>& words) {
    std::vector<std::string_view> fields;
    std::size_t word = 0;
    text_column_ = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (word == words.size())
        lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found " +
                    std::to_string(words.size()));
      fields.push_back(words[word++]);
      std::uint64_t ignored = 0;
      if (columns_[i].time) {
        if (word < words.size() && is_time_unit(words[word])) ++word;
      } else if (!parse_hexadecimal(fields.back(), ignored)) {
        text_column_ = i;
        break;
      }
    }
    for (std::size_t i = text_column_ + 1; i < columns_.size(); ++i) {
      if (!columns_[i].time) left_out_ += (left_out_.empty() ? "" : ", ") + columns_[i].name;
      columns_[i].time = true;
      fields.emplace_back();
    }
    return fields;
  }

  /// Of a table of numbers: the columns with other digits than 0 and 1 in the rows at hand.
  std::vector<bool> columns_of_digits(const std::vector<std::string_view>& first) const {
    std::vector<bool> digits(columns_.size());
    std::uint64_t value = 0;
    const bool numbers = std::any_of(first.begin(), first.end(), [&](std::string_view field) {
      return field.size() > 1 && parse_hexadecimal(field, value);
    });
    // A table of levels stays one, whatever damage stands in it.
    if (!numbers) return digits;
    std::string_view text = head_;
    for (std::uint64_t line = 1;; ++line) {
      const auto end = text.find('\n');
      if (end == std::string_view::npos) return digits;
      const std::string_view row = trimmed(text.substr(0, end));
      text.remove_prefix(end + 1);
      if (line < lines_.number() || row.empty() || row[0] == ';' || row[0] == '#') continue;
      const auto fields = separator_ == ' ' ? words_of(row) : split(row, separator_);
      for (std::size_t i = 0; i < std::min(fields.size(), digits.size()); ++i) {
        const bool level = fields[i] == "0" || fields[i] == "1";
        if (fields[i].size() == 1 && !level && parse_hexadecimal(fields[i], value))
          digits[i] = true;
      }
    }
  }

  /// The words of a row before the first column of text, without units of times.
  std::vector<std::string_view> words_of(std::string_view row) const {
    std::vector<std::string_view> words;
    while (words.size() < text_column_) {
      words.push_back(take_word(row));
      std::string_view rest = row;
      if (columns_[words.size() - 1].time && is_time_unit(take_word(rest))) row = rest;
    }
    return words;
  }

  void measure_columns(const std::vector<std::string_view>& fields) {
    const std::vector<bool> digits = columns_of_digits(fields);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      Column& column = columns_[i];
      if (column.time) continue;
      column.first_channel = info_.channels.size();
      if ((fields[i] == "0" || fields[i] == "1") && !digits[i]) {
        column.bits = 1;
        info_.channels.push_back(column.name);
        continue;
      }
      std::uint64_t value = 0;
      if (!parse_hexadecimal(fields[i], value)) {
        // Disassembly, symbols: columns for people.
        column.time = true;
        continue;
      }
      std::string_view number = fields[i];
      if (begins_with(number, "0x") || begins_with(number, "0X")) number.remove_prefix(2);
      if (number.size() > 1 && (number.back() == 'h' || number.back() == 'H'))
        number.remove_suffix(1);
      column.bits = number.size() * 4;
      for (std::size_t bit = 0; bit < column.bits; ++bit)
        info_.channels.push_back(column.name + std::to_string(bit));
    }
  }

  /// A row of words: read up to the first column of text.
  void read_words(std::string_view line) {
    for (std::size_t i = 0; i < text_column_; ++i) {
      const Column& column = columns_[i];
      const std::string_view word = take_word(line);
      if (word.empty())
        lines_.fail("expected a value in column '" + column.name + "', found the end of the line");
      if (!column.time) {
        read_value(column, word);
        continue;
      }
      std::string_view rest = line;
      if (is_time_unit(take_word(rest))) line = rest;
    }
    if (text_column_ == columns_.size() && !trimmed(line).empty())
      lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found more");
    buffer_.add(sample_, 0);
  }

  void read_row(std::string_view line) {
    std::size_t i = 0;
    bool more = true;
    std::string_view time;
    for (bool last = false; !last && i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      // Most fields by far are a level and a comma.
      const bool level = line.size() >= 2 && line[1] == separator_;
      std::string_view field = line.substr(0, 1);
      if (level) {
        line.remove_prefix(2);
      } else {
        field = take_field(line, separator_, last);
      }
      if (column.time) {
        if (i == 0) time = field;
      } else if (column.bits == 1 && field.size() == 1) {
        if (field[0] != '0' && field[0] != '1') bad_value(column, field);
        set_level(sample_, column.first_channel, field[0] == '1');
      } else {
        read_value(column, field);
      }
      if (last && i + 1 != columns_.size())
        lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found " +
                    std::to_string(i + 1));
      more = !last;
    }
    if (more) lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found more");
    buffer_.add(sample_, changes_only_ ? number_of(time) : 0);
  }

  void read_value(const Column& column, std::string_view field) {
    std::uint64_t value = 0;
    if (!parse_hexadecimal(field, value) || (column.bits < 64 && (value >> column.bits) != 0))
      bad_value(column, field);
    for (std::size_t bit = 0; bit < column.bits; ++bit)
      set_level(sample_, column.first_channel + bit, ((value >> bit) & 1) != 0);
  }

  [[noreturn]] void bad_value(const Column& column, std::string_view field) const {
    lines_.fail("expected a value of " + std::to_string(column.bits) + " bits in column '" +
                column.name + "', found '" + shown(field) + "'");
  }

  /// Sample number of a time in seconds: samples where the rate is known, else nanoseconds.
  std::uint64_t number_of(std::string_view time) {
    // Times before the trigger are negative: count from the first one.
    const bool negative = !time.empty() && time.front() == '-';
    double seconds = parse_real(negative ? time.substr(1) : time);
    if (seconds < 0) lines_.fail("expected a time, found '" + shown(time) + "'");
    if (negative) seconds = -seconds;
    seconds *= seconds_per_unit_;
    if (!any_) begin_ = std::min(seconds, 0.0);
    constexpr double kNanoseconds = 1e9;
    const double rate = info_.sample_rate_hz > 0 ? info_.sample_rate_hz : kNanoseconds;
    const double scaled = std::round((seconds - begin_) * rate);
    if (scaled < 0 || scaled > 9e18) lines_.fail("expected a time within the capture");
    const auto number = static_cast<std::uint64_t>(scaled);
    if (any_ && number < number_)
      lines_.fail("expected times to rise, found '" + shown(time) + "'");
    number_ = any_ && number == number_ ? number_ + 1 : number;
    any_ = true;
    return number_;
  }

  std::string head_;  ///< of the file, until the columns are known
  LineReader lines_;
  SampleInfo info_;
  char separator_ = ',';
  std::vector<std::string> listed_;  ///< channel names of a comment
  std::vector<Column> columns_;
  int time_column_ = -1;
  std::size_t text_column_ = 0;  ///< first column that words do not delimit; all if none
  std::string left_out_;         ///< names of the columns of values behind it
  bool changes_only_ = false;
  std::string_view row_;
  bool row_pending_ = false;
  std::vector<std::uint8_t> sample_;
  SampleBuffer buffer_{1, false};
  double seconds_per_unit_ = 1;  ///< of times
  double begin_ = 0;
  std::uint64_t number_ = 0;
  bool any_ = false;
};

/// Whether the first line names columns, the first of them the number of the sample, and the next
/// ones begin with one.
bool rate_printed_table(std::string_view text) {
  std::size_t columns = 0, rows = 0;
  while (rows < 4 && !text.empty()) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (line.empty() || is_rule(line)) continue;
    if (columns == 0 && separator_of(line) != ' ') return false;
    const auto words = split(line, ' ');
    if (columns == 0) {
      columns = words.size();
      if (columns < 2 || !names_a_position(words[0])) return false;
      continue;
    }
    if (words.size() < 2 || words[0].find_first_not_of("0123456789-,.") != std::string_view::npos)
      return false;
    ++rows;
  }
  return rows != 0;
}

}  // namespace

std::unique_ptr<SampleSource> open_sample_csv(std::unique_ptr<InputStream> input) {
  return std::make_unique<CsvSource>(std::move(input));
}

int rate_sample_csv(std::span<const std::uint8_t> prefix) {
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (text.find('\0') != std::string_view::npos) return 0;
  if (text.find("CSV generated by libsigrok") < 64 || text.find("generated by DSView") < 64 ||
      begins_with(text, "Time [s],"))
    return 95;
  if (rate_printed_table(text)) return 30;
  // Any table: the same number of separators in the first lines, values in the second.
  std::size_t rows = 0, columns = 0;
  for (std::size_t begin = 0; begin < text.size() && rows < 8;) {
    const auto end = text.find('\n', begin);
    if (end == std::string_view::npos) break;
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line[0] == ';' || line[0] == '#') continue;
    const auto fields = split(line, separator_of(line));
    if (fields.size() < 2 || (columns != 0 && fields.size() != columns)) return 0;
    columns = fields.size();
    const auto values = std::count_if(fields.begin(), fields.end(), is_value);
    if (rows > 0 && values == 0) return 0;
    ++rows;
  }
  return rows >= 2 ? 30 : 0;
}

}  // namespace citcat
