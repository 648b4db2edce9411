#include "formats/captures/sample_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "formats/captures/sample_buffer.h"
#include "formats/captures/table_cells.h"
#include "formats/captures/table_head.h"
#include "formats/captures/table_rows.h"
#include "formats/captures/table_text.h"
#include "formats/captures/table_times.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

bool begins_with(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

class CsvSource final : public SampleSource {
 public:
  explicit CsvSource(std::unique_ptr<InputStream> input)
      : head_(head_of(*input)), lines_(std::move(input), line_end_of(head_)) {
    if (line_end_of(head_) == '\r') std::replace(head_.begin(), head_.end(), '\r', '\n');
    marks_numbers_ = marks_numbers(head_);
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
      if (is_comment(row_, marks_numbers_)) continue;
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
    std::vector<std::string> warnings = doubts_;
    if (!left_out_.empty())
      warnings.push_back("columns after the text of column '" + columns_[text_column_].name +
                         "' are left out, because words do not show where it ends: " + left_out_);
    if (unknown_ != 0)
      warnings.push_back(std::to_string(unknown_) + " levels are x, z or ?: they read as 0");
    if (clock_.crowded() != 0)
      warnings.push_back(std::to_string(clock_.crowded()) +
                         " rows are less than a sample after the row before: each is taken for "
                         "the next sample");
    if (clock_.uneven() != 0)
      warnings.push_back(std::to_string(clock_.uneven()) +
                         " rows are not a whole number of samples after the row before, as the "
                         "first ones are: sample numbers are approximate");
    return warnings;
  }

 private:
  struct Column {
    std::string name;
    bool time = false;  ///< of times or text: no channel
    std::size_t first_channel = 0;
    std::size_t bits = 0;
    CellForm::Kind kind = CellForm::Kind::level;
    unsigned base = 16;
    double low_to = 0, high_from = 0;  ///< voltages between them change nothing
  };

  /// What the columns are judged by.
  static std::string head_of(InputStream& input) {
    constexpr std::size_t kHeadBytes = std::size_t{1} << 16;
    const auto head = input.peek(kHeadBytes);
    if (auto wide = Utf16Decoder::for_text(head)) return wide->decode(head);
    return {head.begin(), head.end()};
  }

  /// Comments, titles, the line of column names if there is one, units, and the first row.
  void read_head() {
    separator_ = separator_of(head_);
    const std::uint64_t names_line = line_of_names(head_, separator_);
    while (lines_.next(row_)) {
      if (is_comment(row_, marks_numbers_)) {
        read_comment(row_);
        continue;
      }
      if (const auto separator = declared_separator(row_)) {
        separator_ = *separator;
        continue;
      }
      if ((separator_ == ' ' || separator_ == '|') && is_rule(row_)) continue;
      if (columns_.empty()) {
        const auto fields = first_fields(row_, separator_);
        if (lines_.number() < names_line) {
          read_setting(fields);
          continue;
        }
        if (is_title(fields)) {
          read_comment(" " + std::string(row_));
          continue;
        }
        if (looks_like_names(fields)) {
          name_columns(fields);
          continue;
        }
        name_or_number(fields);
      }
      fit_columns();
      const auto fields = fields_of(row_, separator_, columns_.size());
      if (fields.size() == columns_.size() && is_row_of_units(fields)) {
        take_units(fields);
        continue;
      }
      if (is_row_of_steps(fields)) {
        take_steps(fields);
        continue;
      }
      first_row(fields);
      row_pending_ = true;
      return;
    }
    lines_.fail("expected a table of samples, found no row of values");
  }

  /// Makes the columns those of the rows, where the names are more or fewer.
  void fit_columns() {
    if (separator_ == ' ') return;
    std::vector<std::string_view> names;
    for (const Column& column : columns_) names.emplace_back(column.name);
    const std::size_t cells = first_fields(row_, separator_).size();
    const Misfit misfit = misfit_of(cells, names, head_, separator_, lines_.number());
    if (misfit == Misfit::without_steps) {
      columns_.resize(cells);
    } else if (misfit == Misfit::with_row_numbers) {
      columns_.insert(columns_.begin(), Column{.name = {}, .time = true});
      if (time_column_ >= 0) ++time_column_;
    }
  }

  /// A line above the table that has its separators.
  void read_setting(const std::vector<std::string_view>& fields) {
    if (const auto seconds = sample_interval(fields)) info_.sample_rate_hz = 1 / *seconds;
    if (const double unit = horizontal_unit(fields); unit != 0) horizontal_unit_ = unit;
  }

  /// Rigol's first column counts, and the steps are in two of their own.
  void take_steps(const std::vector<std::string_view>& fields) {
    columns_[0].time = true;
    for (std::size_t i = 1; i < std::min(fields.size(), columns_.size()); ++i) {
      if (!names_a_step(columns_[i].name)) continue;
      columns_[i].time = true;
      const auto seconds = parse_time(fields[i], 1);
      if (lower_case(columns_[i].name) == "increment" && seconds && *seconds > 0)
        info_.sample_rate_hz = 1 / *seconds;
    }
  }

  /// A line above the table: it has none of the separators that the rows have.
  bool is_title(const std::vector<std::string_view>& fields) const {
    if (fields.size() != 1 || separator_ == ' ') return false;
    const auto lines = lines_of(head_);
    return std::any_of(lines.begin(), lines.end(), [&](const NumberedLine& line) {
      return line.text.find(separator_) != std::string_view::npos;
    });
  }

  /// The first character is that of a comment.
  void read_comment(std::string_view line) {
    if (line.find("DSView") != std::string_view::npos) changes_only_ = true;
    if (line.size() > 1) comment_ = line.substr(1);
    list_numbered_channel(trimmed(line.substr(std::min<std::size_t>(1, line.size()))));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string key = lower_case(trimmed(line.substr(1, colon - 1)));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "samplerate" || key == "sample rate") {
      info_.sample_rate_hz = parse_sample_rate(std::string(value));
    } else if (key == "period") {
      if (const auto period = parse_time(value, 0); period && *period > 0)
        info_.sample_rate_hz = 1 / *period;
    } else if (begins_with(key, "channels (") && value.find(',') != std::string_view::npos) {
      listed_.clear();
      for (const auto name : split_row(value, ',')) listed_.emplace_back(name);
    }
  }

  /// "3  CLK": libsigrok lists the columns for gnuplot in comments, from 0.
  void list_numbered_channel(std::string_view comment) {
    std::uint64_t number = 0;
    if (!parse_decimal(take_word(comment), number) || number != listed_.size()) return;
    if (const std::string_view name = trimmed(comment); !name.empty()) listed_.emplace_back(name);
  }

  void name_columns(const std::vector<std::string_view>& fields) {
    if (fields.size() > kMaxChannels) lines_.fail("expected fewer columns");
    for (const auto field : fields) {
      Column column;
      column.name = std::string(field);
      // A first column without a name numbers the rows (pandas, R).
      column.time = names_a_position(field) || (field.empty() && columns_.empty());
      if (column.time && time_column_ < 0 && lower_case(field) != "index") {
        const double unit = unit_of_column(field);
        if (unit != 0 || begins_with(lower_case(field), "time")) {
          time_column_ = static_cast<int>(columns_.size());
          seconds_per_unit_ = unit;
        }
      }
      columns_.push_back(column);
    }
    if (time_column_ >= 0 && seconds_per_unit_ == 0) seconds_per_unit_ = horizontal_unit_;
    // After libsigrok's channels may be whether the trigger was met (output/csv.c of 0.5.2).
    if (time_column_ == 0 && columns_.back().name == "Trigger" &&
        columns_.size() == listed_.size() + 2)
      columns_.back().time = true;
    name_from_list();
  }

  /// The names may be in the comment above the first row (NumPy's savetxt()).
  void name_or_number(const std::vector<std::string_view>& fields) {
    const auto names = first_fields(comment_, separator_);
    if (listed_.empty() && names.size() == fields.size() && names.size() > 1 &&
        looks_like_names(names)) {
      name_columns(names);
    } else {
      number_columns(fields);
    }
  }

  void number_columns(const std::vector<std::string_view>& fields) {
    if (fields.size() > kMaxChannels) lines_.fail("expected fewer columns");
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string name = listed_.size() == fields.size() ? listed_[i] : std::to_string(i);
      columns_.push_back({.name = name, .time = names_a_position(name)});
    }
  }

  void take_units(const std::vector<std::string_view>& fields) {
    if (time_column_ < 0 || seconds_per_unit_ != 0) return;
    seconds_per_unit_ = unit_of_time(fields[static_cast<std::size_t>(time_column_)]);
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

  /// The first values say how wide the columns are.
  void first_row(const std::vector<std::string_view>& fields) {
    if (separator_ != ' ' && fields.size() != columns_.size())
      lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found " +
                  std::to_string(fields.size()));
    measure_columns(separator_ == ' ' ? align_words(fields) : fields);
    if (info_.channels.empty()) lines_.fail(no_channels(fields));
    if (info_.channels.size() > kMaxChannels)
      lines_.fail("expected columns with 1 to " + std::to_string(kMaxChannels) +
                  " bits in all, found " + std::to_string(info_.channels.size()));
    if (changes_only_ && time_column_ < 0)
      lines_.fail("expected a column of times in a file of changes, found none");
    if (separator_ != ' ') number_by_times(fields);
  }

  /// Which column is the first of those that are no levels.
  std::string no_channels(const std::vector<std::string_view>& fields) const {
    for (std::size_t i = 0; i < std::min(fields.size(), columns_.size()); ++i)
      if (!names_a_position(columns_[i].name))
        return "expected levels or numbers, found '" + shown(fields[i]) + "' in column " +
               std::to_string(i + 1) + " ('" + shown(columns_[i].name) + "')";
    return "expected columns of levels, found times only";
  }

  /// Times in a known unit say which sample a row is: programs leave out rows that are like the
  /// one before (Saleae, Kingst, DSView, libsigrok with csv:dedup=true), or write each.
  void number_by_times(const std::vector<std::string_view>& fields) {
    if (time_column_ < 0) return;
    const auto column = static_cast<std::size_t>(time_column_);
    if (changes_only_ && seconds_per_unit_ == 0) seconds_per_unit_ = 1;
    const bool in_cells =
        seconds_per_unit_ == 0 && parse_time(fields[column], 1) && !is_table_number(fields[column]);
    if (in_cells) seconds_per_unit_ = 1;
    if (seconds_per_unit_ == 0) return;
    clock_ = RowClock(info_.sample_rate_hz);
    find_thousands(column);
    learn_steps(column);
    // libsigrok names a unit alone: without a rate its rows are samples.
    const bool unit_alone = unit_of_time(columns_[column].name) != 0;
    changes_only_ = changes_only_ || !unit_alone || info_.sample_rate_hz > 0;
    if (info_.sample_rate_hz == 0) info_.sample_rate_hz = clock_.rate_found();
  }

  /// The cells of a column in the rows of the head; none where a row lacks it.
  std::vector<std::string_view> cells_of(std::size_t column) const {
    std::vector<std::string_view> cells;
    for (const NumberedLine& line : lines_of(head_)) {
      if (line.number < lines_.number()) continue;
      const auto fields = split_row(line.text, separator_);
      if (column >= fields.size()) return {};
      cells.push_back(fields[column]);
    }
    return cells;
  }

  void find_thousands(std::size_t column) {
    thousands_ = sign_of_thousands(cells_of(column), seconds_per_unit_);
    if (thousands_ != 0)
      doubts_.push_back("times of column '" + columns_[column].name + "': '" + thousands_ +
                        "' is read as the sign between thousands");
  }

  void learn_steps(std::size_t column) {
    std::vector<double> times;
    double resolution = 1;
    for (const std::string_view cell : cells_of(column)) {
      const auto time = time_of(cell);
      if (!time) return;
      times.push_back(*time);
      resolution = std::min(resolution, resolution_of_time(cell, seconds_per_unit_));
    }
    clock_.learn(times, resolution);
  }
  std::optional<double> time_of(std::string_view cell) {
    if (thousands_ != 0) {
      std::string text(cell);
      std::erase(text, thousands_);
      return parse_time(text, seconds_per_unit_);
    }
    const std::optional<double> time = parse_time(cell, seconds_per_unit_);
    const auto day = day_of_time(cell);
    if (!time || !day) return time;
    // Days since the first row, so that no digits of the time are lost.
    constexpr double kSecondsPerDay = 86400;
    if (!first_day_) first_day_ = *day;
    return *time + static_cast<double>(*day - *first_day_) * kSecondsPerDay;
  }

  /// The words of a row as far as they can be distinguished: a time may be two, text any number.
  std::vector<std::string_view> align_words(const std::vector<std::string_view>& words) {
    std::vector<std::string_view> fields;
    std::size_t word = 0;
    text_column_ = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (word == words.size())
        lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found " +
                    std::to_string(words.size()));
      fields.push_back(words[word++]);
      if (columns_[i].time) {
        if (word < words.size() && unit_of_time(words[word]) != 0) ++word;
      } else if (!is_table_value(fields.back())) {
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

  /// The values of each column in the rows of the head, those of the first row first.
  std::vector<std::vector<std::string_view>> head_cells(
      const std::vector<std::string_view>& first) const {
    std::vector<std::vector<std::string_view>> cells(columns_.size());
    const auto add = [&](const std::vector<std::string_view>& fields) {
      for (std::size_t i = 0; i < std::min(fields.size(), cells.size()); ++i)
        cells[i].push_back(fields[i]);
    };
    add(first);
    for (const NumberedLine& line : lines_of(head_, head_.size())) {
      if (line.number <= lines_.number()) continue;
      add(separator_ == ' ' ? words_of(trimmed(line.text)) : split_row(line.text, separator_));
    }
    return cells;
  }

  /// The words of a row before the first column of text, without units of times.
  std::vector<std::string_view> words_of(std::string_view row) const {
    std::vector<std::string_view> words;
    while (words.size() < text_column_) {
      words.push_back(take_word(row));
      std::string_view rest = row;
      if (columns_[words.size() - 1].time && unit_of_time(take_word(rest)) != 0) row = rest;
    }
    return words;
  }

  void measure_columns(const std::vector<std::string_view>& fields) {
    // A table of levels stays one, whatever damage is in it.
    const bool numbers = std::any_of(fields.begin(), fields.end(), [](std::string_view field) {
      return field.size() > 1 && parse_cell(field, 16);
    });
    const auto cells = head_cells(fields);
    bool voltages = false;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      voltages = voltages || (!columns_[i].time && are_voltages(cells[i]));
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      Column& column = columns_[i];
      if (column.time) continue;
      const CellForm form = form_of_cells(column.name, cells[i], numbers, voltages);
      // Disassembly, symbols: columns for people.
      column.time = form.kind == CellForm::Kind::text;
      column.kind = form.kind;
      column.base = form.base;
      column.bits = form.channels.size();
      column.first_channel = info_.channels.size();
      info_.channels.insert(info_.channels.end(), form.channels.begin(), form.channels.end());
      if (!form.doubt.empty())
        doubts_.push_back("column '" + column.name + "' is read as " + form.doubt);
    }
    if (voltages) set_thresholds(cells);
  }

  /// In the middle of the range of the first rows; a column that hardly moves in them has the
  /// threshold of the one that moves most.
  void set_thresholds(const std::vector<std::vector<std::string_view>>& cells) {
    constexpr double kMoves = 0.25, kHysteresis = 0.1;
    CellRange widest;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].kind == CellForm::Kind::voltage &&
          range_of(cells[i]).width() > widest.width())
        widest = range_of(cells[i]);
    std::string list;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      Column& column = columns_[i];
      if (column.kind != CellForm::Kind::voltage) continue;
      CellRange range = range_of(cells[i]);
      if (range.width() < kMoves * widest.width()) range = widest;
      const double middle = range.least + range.width() / 2;
      column.low_to = middle - kHysteresis * range.width();
      column.high_from = middle + kHysteresis * range.width();
      std::array<char, 32> text{};
      const auto end = std::to_chars(text.data(), text.data() + text.size(), middle,
                                     std::chars_format::general, 3);
      list += (list.empty() ? "" : ", ") + column.name + ' ' + std::string(text.data(), end.ptr);
    }
    doubts_.push_back(
        "voltages are read as levels, by the middle of their range in the first rows "
        "and a tenth of it as hysteresis: " +
        list);
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
      if (unit_of_time(take_word(rest)) != 0) line = rest;
    }
    if (text_column_ == columns_.size() && !trimmed(line).empty())
      lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found more");
    buffer_.add(sample_, 0);
  }

  void read_row(std::string_view line) {
    line = without_edges(line, separator_);
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
        if (static_cast<int>(i) == time_column_) time = field;
      } else {
        read_value(column, field);
      }
      if (last && i + 1 != columns_.size())
        lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found " +
                    std::to_string(i + 1));
      more = !last;
    }
    // A last separator may be after the last value.
    if (more && !trimmed(line).empty())
      lines_.fail("expected " + std::to_string(columns_.size()) + " columns, found more");
    buffer_.add(sample_, changes_only_ ? number_of(time) : 0);
  }

  void check_unknown(const Column& column, std::string_view field) {
    if (!is_unknown_level(field)) bad_value(column, field);
    ++unknown_;
  }

  void read_value(const Column& column, std::string_view field) {
    switch (column.kind) {
      case CellForm::Kind::level:
        if (field.size() != 1) return read_number(column, field);
        if (field[0] != '0' && field[0] != '1') check_unknown(column, field);
        set_level(sample_, column.first_channel, field[0] == '1');
        break;
      case CellForm::Kind::word_level:
        return read_level(column, field, level_in_words(field));
      case CellForm::Kind::real_level:
        return read_level(column, field, real_level(field));
      case CellForm::Kind::voltage:
        return read_voltage(column, field);
      case CellForm::Kind::number:
      case CellForm::Kind::text:
        return read_number(column, field);
    }
  }
  void read_level(const Column& column, std::string_view field, std::optional<bool> level) {
    if (!level) check_unknown(column, field);
    set_level(sample_, column.first_channel, level.value_or(false));
  }
  void read_voltage(const Column& column, std::string_view field) {
    const auto value = real_number(field);
    if (!value) bad_value(column, field);
    if (*value >= column.high_from) set_level(sample_, column.first_channel, true);
    if (*value <= column.low_to) set_level(sample_, column.first_channel, false);
  }
  void read_number(const Column& column, std::string_view field) {
    const auto value = parse_cell(field, column.base);
    if (!value || (column.bits < 64 && (*value >> column.bits) != 0)) bad_value(column, field);
    for (std::size_t bit = 0; bit < column.bits; ++bit)
      set_level(sample_, column.first_channel + bit, ((*value >> bit) & 1) != 0);
  }

  [[noreturn]] void bad_value(const Column& column, std::string_view field) const {
    const std::string_view base = column.base == 2    ? "binary "
                                  : column.base == 10 ? "decimal "
                                                      : "";
    if (column.kind == CellForm::Kind::voltage)
      lines_.fail("expected a voltage in column '" + column.name + "', found '" + shown(field) +
                  "'");
    lines_.fail("expected a " + std::string(base) + "value of " + std::to_string(column.bits) +
                " bits in column '" + column.name + "', found '" + shown(field) + "'");
  }

  /// Sample number of a row's time: samples where the rate is known, else nanoseconds.
  std::uint64_t number_of(std::string_view text) {
    const std::optional<double> time = time_of(text);
    if (!time)
      lines_.fail("expected a time in column '" + shown(columns_[time_column()].name) +
                  "', found '" + shown(text) + "'");
    const std::optional<std::uint64_t> number = clock_.number_of(*time);
    if (!number)
      lines_.fail("expected times to rise within a capture, found '" + shown(text) + "'");
    return *number;
  }

  std::size_t time_column() const { return static_cast<std::size_t>(time_column_); }

  std::string head_;  ///< of the file, until the columns are known
  LineReader lines_;
  SampleInfo info_;
  char separator_ = ',';
  bool marks_numbers_ = false;       ///< rows may begin with a word like "#18"
  std::vector<std::string> listed_;  ///< channel names of a comment
  std::string comment_;              ///< the last one
  std::vector<Column> columns_;
  int time_column_ = -1;             ///< -1: none
  std::size_t text_column_ = 0;      ///< first column that words do not delimit; all if none
  std::string left_out_;             ///< names of the columns of values after it
  std::vector<std::string> doubts_;  ///< what was decided by values alone
  bool changes_only_ = false;
  std::string_view row_;
  bool row_pending_ = false;
  std::vector<std::uint8_t> sample_;
  SampleBuffer buffer_{1, false};
  double seconds_per_unit_ = 0;  ///< of times; 0: not known
  double horizontal_unit_ = 0;   ///< the same, of the settings above the table
  char thousands_ = 0;           ///< the sign between thousands in times, where it is not clear
  std::optional<std::int64_t> first_day_;  ///< of times with dates
  RowClock clock_{0};
  std::uint64_t unknown_ = 0;  ///< levels
};

}  // namespace

std::unique_ptr<SampleSource> open_sample_csv(std::unique_ptr<InputStream> input) {
  return std::make_unique<CsvSource>(std::move(input));
}

}  // namespace citcat
