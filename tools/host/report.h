#pragma once
// The results of a tool: values and tables with units, in a fixed order. Renderers decide how they
// look (report_text.h).

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace citcat::tools {

/// A number of whole things, a fraction or a text. Addresses are texts (hexadecimal()).
using Cell = std::variant<std::uint64_t, double, std::string>;

/// Numbers of whole things have no sign; what is below 0 is a fraction to them.
Cell signed_cell(std::int64_t value);

/// "c0123456", as all texts of addresses: eight digits, more where they need more.
std::string hexadecimal(std::uint64_t value);

struct Column {
  std::string key;    ///< of JSON and CSV: lower case, underscores
  std::string title;  ///< for people
  std::string unit;   ///< "bytes", "%"; empty for counts of what the title says
};

struct Table {
  std::string key, title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  ///< each as long as `columns`

  void row(std::vector<Cell> cells) { rows.push_back(std::move(cells)); }
};

/// An object of values, tables and further objects, in the order in which they were added.
class Report {
 public:
  struct Value {
    std::string key, title, unit;
    Cell cell;
  };
  struct Group {
    std::string key, title;
    std::shared_ptr<Report> report;
  };
  using Entry = std::variant<Value, Table, Group>;

  void value(std::string key, std::string title, Cell cell, std::string unit = "");
  /// Valid as long as the report.
  Report& group(std::string key, std::string title);
  Table& table(std::string key, std::string title, std::vector<Column> columns);
  const std::list<Entry>& entries() const { return entries_; }

 private:
  std::list<Entry> entries_;
};

}  // namespace citcat::tools
