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

std::string heading(const Column& column) {
  const std::string title = title_text(column.title);
  return title.ends_with(column.unit) ? title : with_unit(title, column.unit);
}

/// In lines of at most `width` characters, as far as words allow.
std::vector<std::string> broken(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
    at = end + 1;
  }
  return lines;
}

struct TextColumn {
  std::vector<std::string> heading;  ///< line by line
  std::size_t width = 0;
  bool left = false;
};

/// The columns as wide as their cells and headings. Long headings are broken where a line of them
/// would be too long.
std::vector<TextColumn> text_columns(const Table& table) {
  constexpr std::size_t kLongestLine = 120, kNarrow = 16;
  std::vector<TextColumn> columns(table.columns.size());
  std::size_t line = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (const auto& row : table.rows) {
      columns[c].width = std::max(columns[c].width, cell_text(row[c]).size());
      columns[c].left |= std::holds_alternative<std::string>(row[c]);
    }
    line += 1 + std::max(columns[c].width, heading(table.columns[c]).size());
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string text = heading(table.columns[c]);
    TextColumn& column = columns[c];
    column.heading =
        broken(text, line > kLongestLine ? std::max(column.width, kNarrow) : text.size());
    for (const std::string& part : column.heading)
      column.width = std::max(column.width, part.size());
  }
  return columns;
}

std::string table_text(const Table& table, const std::string& margin) {
  const std::vector<TextColumn> columns = text_columns(table);
  std::string out = margin + title_text(table.title) + "\n";
  const auto line = [&](auto&& text_of) {
    std::string l = margin + " ";
    for (std::size_t c = 0; c < columns.size(); ++c) {
      l += columns[c].left ? fmt::format(" {:<{}}", text_of(c), columns[c].width)
                           : fmt::format(" {:>{}}", text_of(c), columns[c].width);
    }
    l.erase(l.find_last_not_of(' ') + 1);
    out += l + "\n";
  };
  std::size_t lines = 0;
  for (const TextColumn& column : columns) lines = std::max(lines, column.heading.size());
  for (std::size_t n = lines; n != 0; --n) {
    line([&](std::size_t c) {
      const auto& parts = columns[c].heading;
      return n <= parts.size() ? parts[parts.size() - n] : std::string();
    });
  }
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
