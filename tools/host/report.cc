#include "tools/host/report.h"

#include <fmt/format.h>

#include <utility>

namespace citcat::tools {

Cell signed_cell(std::int64_t value) {
  if (value < 0) return static_cast<double>(value);
  return static_cast<std::uint64_t>(value);
}

std::string hexadecimal(std::uint64_t value) { return fmt::format("{:08x}", value); }

void Report::value(std::string key, std::string title, Cell cell, std::string unit) {
  entries_.push_back(Value{std::move(key), std::move(title), std::move(unit), std::move(cell)});
}

Report& Report::group(std::string key, std::string title) {
  entries_.push_back(Group{std::move(key), std::move(title), std::make_shared<Report>()});
  return *std::get<Group>(entries_.back()).report;
}

Table& Report::table(std::string key, std::string title, std::vector<Column> columns) {
  entries_.push_back(Table{std::move(key), std::move(title), std::move(columns), {}});
  return std::get<Table>(entries_.back());
}

}  // namespace citcat::tools
