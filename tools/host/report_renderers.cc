#include "tools/host/report_renderers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/text/printable_text.h"

namespace citcat::tools {

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

nlohmann::ordered_json cell_json(const Cell& cell) {
  return std::visit([](const auto& value) { return nlohmann::ordered_json(value); }, cell);
}

/// Fractions with the digits that a table needs.
std::string cell_text(const Cell& cell) {
  return std::visit(Overloaded{[](std::uint64_t n) { return fmt::format("{}", n); },
                               [](double x) { return fmt::format("{:.3f}", x); },
                               [](const std::string& text) { return printable_text(text); }},
                    cell);
}

/// Titles come from tools of one's own, too.
std::string title_text(const std::string& title) { return printable_text(title); }

std::string with_unit(const std::string& text, const std::string& unit) {
  return unit.empty() ? text : text + " " + printable_text(unit);
}

std::string table_text(const Table& table, const std::string& margin) {
  std::vector<std::size_t> widths;
  std::vector<bool> left;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    std::size_t width = with_unit(title_text(column.title), column.unit).size();
    bool texts = false;
    for (const auto& row : table.rows) {
      width = std::max(width, cell_text(row[c]).size());
      texts |= std::holds_alternative<std::string>(row[c]);
    }
    widths.push_back(width);
    left.push_back(texts);
  }
  std::string out = margin + title_text(table.title) + "\n";
  const auto line = [&](auto&& text_of) {
    std::string l = margin + " ";
    for (std::size_t c = 0; c < widths.size(); ++c) {
      l += left[c] ? fmt::format(" {:<{}}", text_of(c), widths[c])
                   : fmt::format(" {:>{}}", text_of(c), widths[c]);
    }
    l.erase(l.find_last_not_of(' ') + 1);
    out += l + "\n";
  };
  line([&](std::size_t c) {
    return with_unit(title_text(table.columns[c].title), table.columns[c].unit);
  });
  for (const auto& row : table.rows) line([&](std::size_t c) { return cell_text(row[c]); });
  return out;
}

std::string csv_cell(const Cell& cell) {
  return std::visit(Overloaded{[](std::uint64_t n) { return fmt::format("{}", n); },
                               [](double x) { return fmt::format("{}", x); },
                               [](const std::string& text) { return csv_field(text); }},
                    cell);
}

template <class Fields>
void csv_line(std::string& out, const Fields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) out += (i != 0 ? "," : "") + fields[i];
  out += "\n";
}

void csv_table(std::string& out, const Table& table, const std::string& path) {
  if (!out.empty()) out += "\n";
  out += csv_field(path + "." + table.key) + "\n";
  std::vector<std::string> fields;
  for (const Column& column : table.columns) fields.push_back(csv_field(column.key));
  csv_line(out, fields);
  for (const auto& row : table.rows) {
    fields.clear();
    for (const Cell& cell : row) fields.push_back(csv_cell(cell));
    csv_line(out, fields);
  }
}

}  // namespace

nlohmann::ordered_json report_json(const Report& report) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const Report::Entry& entry : report.entries()) {
    std::visit(Overloaded{[&](const Report::Value& v) { json[v.key] = cell_json(v.cell); },
                          [&](const Report::Group& g) { json[g.key] = report_json(*g.report); },
                          [&](const Table& t) {
                            auto& rows = json[t.key] = nlohmann::ordered_json::array();
                            for (const auto& row : t.rows) {
                              nlohmann::ordered_json object;
                              for (std::size_t c = 0; c < row.size(); ++c) {
                                object[t.columns[c].key] = cell_json(row[c]);
                              }
                              rows.push_back(std::move(object));
                            }
                          }},
               entry);
  }
  return json;
}

std::string report_text(const Report& report, unsigned indent) {
  const std::string margin(indent, ' ');
  std::size_t width = 0;
  for (const Report::Entry& entry : report.entries()) {
    if (const auto* v = std::get_if<Report::Value>(&entry))
      width = std::max(width, title_text(v->title).size());
  }
  std::string out;
  for (const Report::Entry& entry : report.entries()) {
    std::visit(Overloaded{[&](const Report::Value& v) {
                            out += fmt::format("{}{:<{}}  {}\n", margin, title_text(v.title), width,
                                               with_unit(cell_text(v.cell), v.unit));
                          },
                          [&](const Report::Group& g) {
                            out += margin + title_text(g.title) + "\n" +
                                   report_text(*g.report, indent + 2);
                          },
                          [&](const Table& t) { out += table_text(t, margin); }},
               entry);
  }
  return out;
}

std::string report_csv(const Report& report, const std::string& path) {
  std::string out;
  Table values{"values", "", {{"key", "", ""}, {"value", "", ""}, {"unit", "", ""}}, {}};
  for (const Report::Entry& entry : report.entries()) {
    if (const auto* v = std::get_if<Report::Value>(&entry)) values.row({v->key, v->cell, v->unit});
  }
  if (!values.rows.empty()) csv_table(out, values, path);
  for (const Report::Entry& entry : report.entries()) {
    if (const auto* t = std::get_if<Table>(&entry)) csv_table(out, *t, path);
    if (const auto* g = std::get_if<Report::Group>(&entry)) {
      const std::string inner = report_csv(*g->report, path + "." + g->key);
      if (!out.empty() && !inner.empty()) out += "\n";
      out += inner;
    }
  }
  return out;
}

std::uint64_t formula_fields(const Report& report) {
  std::uint64_t count = 0;
  const auto look_at = [&](const Cell& cell) {
    const auto* const text = std::get_if<std::string>(&cell);
    if (text != nullptr && is_formula(*text)) ++count;
  };
  for (const Report::Entry& entry : report.entries()) {
    std::visit(Overloaded{[&](const Report::Value& v) { look_at(v.cell); },
                          [&](const Report::Group& g) { count += formula_fields(*g.report); },
                          [&](const Table& t) {
                            for (const auto& row : t.rows) {
                              for (const Cell& cell : row) look_at(cell);
                            }
                          }},
               entry);
  }
  return count;
}

}  // namespace citcat::tools
