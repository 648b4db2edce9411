#include "cli/sql/result_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "formats/io/json_text.h"
#include "formats/text/printable_text.h"

namespace citcat {
namespace {

using ResultPrint = std::function<void(std::string_view)>;
using sql::Cell;
using sql::ResultColumn;

/// Lines are handed over in pieces.
class ResultPieces {
 public:
  explicit ResultPieces(ResultPrint print) : print_(std::move(print)) {}
  void add(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPiece) flush();
  }
  void flush() {
    if (!text_.empty()) print_(text_);
    text_.clear();
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 16;
  ResultPrint print_;
  std::string text_;
};

/// As SQLite writes numbers with a point: 15 digits, and always one after the point.
std::string real_text(double value) {
  std::string text = fmt::format("{:.15g}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

class CsvPrinter final : public sql::ResultSink {
 public:
  explicit CsvPrinter(ResultPrint print) : out_(std::move(print)) {}
  void begin(std::span<const ResultColumn> columns) override {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i != 0) out_.add(",");
      out_.add(csv_field(columns[i].name));
    }
    out_.add("\n");
  }
  void row(std::span<const Cell> cells) override {
    line_.clear();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) line_ += ',';
      switch (cells[i].kind) {
        case Cell::Kind::null:
          break;
        case Cell::Kind::integer:
          fmt::format_to(std::back_inserter(line_), "{}", cells[i].number);
          break;
        case Cell::Kind::real:
          line_ += real_text(cells[i].real);
          break;
        case Cell::Kind::text:
        case Cell::Kind::passing_text:
          line_ += csv_field(cells[i].text);
          break;
      }
    }
    line_ += '\n';
    out_.add(line_);
  }
  void end() override { out_.flush(); }

 private:
  ResultPieces out_;
  std::string line_;
};

class JsonPrinter final : public sql::ResultSink {
 public:
  explicit JsonPrinter(ResultPrint print) : out_(std::move(print)) {}
  void begin(std::span<const ResultColumn> columns) override {
    names_.clear();
    std::set<std::string> taken;
    for (const ResultColumn& column : columns) {
      std::string name = column.name;
      for (int n = 1; !taken.insert(name).second; ++n) name = fmt::format("{}:{}", column.name, n);
      names_.push_back(text_of(name) + ":");
    }
    any_ = false;
    out_.add("[");
  }
  void row(std::span<const Cell> cells) override {
    std::string line = any_ ? ",{" : "{";
    any_ = true;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += (i != 0 ? "," : "") + names_[i];
      switch (cells[i].kind) {
        case Cell::Kind::null:
          line += "null";
          break;
        case Cell::Kind::integer:
          line += std::to_string(cells[i].number);
          break;
        case Cell::Kind::real:
          line += number_of(cells[i].real);
          break;
        case Cell::Kind::text:
        case Cell::Kind::passing_text:
          line += text_of(cells[i].text);
          break;
      }
    }
    out_.add(line + "}");
  }
  void end() override {
    out_.add("]\n");
    out_.flush();
  }

 private:
  /// JSON has no infinity: a number beyond those that a reader can hold, as SQLite's own program
  /// writes it.
  static std::string number_of(double value) {
    if (!std::isinf(value)) return real_text(value);
    return value < 0 ? "-9.0e+999" : "9.0e+999";
  }
  static std::string text_of(std::string_view text) {
    return json_text(nlohmann::ordered_json(std::string(text)));
  }
  ResultPieces out_;
  std::vector<std::string> names_;
  bool any_ = false;
};

/// The first rows are kept until the widths are known.
class ColumnPrinter final : public sql::ResultSink {
 public:
  ColumnPrinter(bool box, ResultPrint print) : box_(box), out_(std::move(print)) {}
  void begin(std::span<const ResultColumn> columns) override {
    columns_.assign(columns.begin(), columns.end());
    rows_.clear();
    widths_.clear();
    right_.assign(columns_.size(), true);
    is_begun_ = false;
  }
  void row(std::span<const Cell> cells) override {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!is_begun_ && cells[i].is_text()) right_[i] = false;
      texts.push_back(text_of(cells[i], columns_[i].is_address));
    }
    if (is_begun_) return print(texts);
    rows_.push_back(std::move(texts));
    if (rows_.size() == kLookedAt) print_first();
  }
  void end() override {
    if (!is_begun_) print_first();
    if (box_) line("└", "┴", "┘");
    out_.flush();
  }

 private:
  static constexpr std::size_t kLookedAt = 1000;

  static std::string text_of(const Cell& cell, bool is_address) {
    switch (cell.kind) {
      case Cell::Kind::null:
        return "";
      case Cell::Kind::integer:
        return is_address ? fmt::format("{:08x}", static_cast<std::uint64_t>(cell.number))
                          : std::to_string(cell.number);
      case Cell::Kind::real:
        return real_text(cell.real);
      case Cell::Kind::text:
      case Cell::Kind::passing_text:
        return printable_text(cell.text);
    }
    return "";
  }
  void print_first() {
    is_begun_ = true;
    std::vector<std::string> names;
    for (const ResultColumn& column : columns_) names.push_back(printable_text(column.name));
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::size_t width = columns_of(names[i]);
      for (const auto& row : rows_) width = std::max(width, columns_of(row[i]));
      widths_.push_back(width);
    }
    if (box_) line("┌", "┬", "┐");
    print(names);
    if (box_) {
      line("├", "┼", "┤");
    } else {
      std::vector<std::string> dashes;
      for (const std::size_t width : widths_) dashes.emplace_back(width, '-');
      print(dashes);
    }
    for (const auto& row : rows_) print(row);
    rows_.clear();
  }
  void line(const char* left, const char* between, const char* right) {
    std::string text = left;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      if (i != 0) text += between;
      for (std::size_t n = 0; n < widths_[i] + 2; ++n) text += "─";
    }
    out_.add(text + right + "\n");
  }
  void print(const std::vector<std::string>& texts) {
    std::string text;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::size_t width = columns_of(texts[i]);
      const std::string padding(width < widths_[i] ? widths_[i] - width : 0, ' ');
      const bool last = i + 1 == texts.size();
      if (box_) {
        text += "│ ";
      } else if (i != 0) {
        text += "  ";
      }
      text += right_[i] ? padding + texts[i] : texts[i] + (last && !box_ ? "" : padding);
      if (box_) text += ' ';
    }
    out_.add(text + (box_ ? "│\n" : "\n"));
  }
  /// Characters of UTF-8.
  static std::size_t columns_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
  }

  const bool box_;
  ResultPieces out_;
  std::vector<ResultColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
  std::vector<bool> right_;
  bool is_begun_ = false;
};

}  // namespace

std::unique_ptr<sql::ResultSink> make_result_printer(ResultForm form,
                                                     std::function<void(std::string_view)> print) {
  switch (form) {
    case ResultForm::csv:
      return std::make_unique<CsvPrinter>(std::move(print));
    case ResultForm::json:
      return std::make_unique<JsonPrinter>(std::move(print));
    case ResultForm::columns:
      return std::make_unique<ColumnPrinter>(false, std::move(print));
    case ResultForm::box:
      return std::make_unique<ColumnPrinter>(true, std::move(print));
  }
  return nullptr;
}

}  // namespace citcat
