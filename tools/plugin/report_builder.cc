#include "tools/plugin/report_builder.h"

namespace citcat::tools {

ReportBuilder::ReportBuilder(Report& report) : calls_{}, groups_{&report} {
  calls_.builder = this;
  citcat_report& c = calls_.c;
  c.size = sizeof c;
  c.number = [](citcat_report* r, const char* key, const char* title, std::uint64_t value,
                const char* unit) { of(r).value(key, title, value, unit); };
  c.fraction = [](citcat_report* r, const char* key, const char* title, double value,
                  const char* unit) { of(r).value(key, title, value, unit); };
  c.text = [](citcat_report* r, const char* key, const char* title, const char* value) {
    of(r).value(key, title, of(r).text(value, "text"), "");
  };
  c.group = [](citcat_report* r, const char* key, const char* title) {
    ReportBuilder& b = of(r);
    b.groups_.push_back(&b.groups_.back()->group(b.text(key, "key"), b.text(title, "title")));
  };
  c.end_group = [](citcat_report* r) {
    if (of(r).groups_.size() == 1) return of(r).wrong("end_group() without group()");
    of(r).groups_.pop_back();
  };
  c.table = [](citcat_report* r, const char* key, const char* title) {
    ReportBuilder& b = of(r);
    if (b.table_ != nullptr) b.wrong("table() within a table");
    b.table_ = &b.groups_.back()->table(b.text(key, "key"), b.text(title, "title"), {});
    b.row_.clear();
  };
  c.column = [](citcat_report* r, const char* key, const char* title, const char* unit) {
    ReportBuilder& b = of(r);
    if (b.table_ == nullptr) return b.wrong("column() without table()");
    if (!b.table_->rows.empty() || !b.row_.empty()) return b.wrong("column() after cells");
    b.table_->columns.push_back({b.text(key, "key"), b.text(title, "title"), unit ? unit : ""});
  };
  c.number_cell = [](citcat_report* r, std::uint64_t value) { of(r).cell(value); };
  c.fraction_cell = [](citcat_report* r, double value) { of(r).cell(value); };
  c.text_cell = [](citcat_report* r, const char* value) { of(r).cell(of(r).text(value, "text")); };
  c.end_table = [](citcat_report* r) { of(r).end_table(); };
}

std::string ReportBuilder::mistake() const {
  if (!mistake_.empty()) return mistake_;
  if (table_ != nullptr) return "table '" + table_->key + "' without end_table()";
  if (groups_.size() > 1) return "group() without end_group()";
  return {};
}

void ReportBuilder::wrong(const std::string& what) {
  if (mistake_.empty()) mistake_ = what;
}

std::string ReportBuilder::text(const char* given, const char* what) {
  if (given == nullptr) wrong(std::string("a ") + what + " is NULL");
  return given ? given : "";
}

void ReportBuilder::value(const char* key, const char* title, Cell cell, const char* unit) {
  groups_.back()->value(text(key, "key"), text(title, "title"), std::move(cell), unit ? unit : "");
}

void ReportBuilder::cell(Cell cell) {
  if (table_ == nullptr) return wrong("a cell without table()");
  if (table_->columns.empty()) return wrong("a cell in a table without columns");
  row_.push_back(std::move(cell));
  if (row_.size() < table_->columns.size()) return;
  table_->rows.push_back(std::move(row_));
  row_.clear();
}

void ReportBuilder::end_table() {
  if (table_ == nullptr) return wrong("end_table() without table()");
  if (!row_.empty()) {
    wrong("the last row of table '" + table_->key + "' has " + std::to_string(row_.size()) +
          " cells, expected " + std::to_string(table_->columns.size()));
  }
  table_ = nullptr;
  row_.clear();
}

}  // namespace citcat::tools
