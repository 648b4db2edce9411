#pragma once
// Takes what a tool in C reports and puts it into a Report.

#include <string>
#include <vector>

#include "tools/host/report.h"
#include "tools/plugin/citcat_tool.h"

namespace citcat::tools {

/// The structure that the tool's report() calls. Calls that make no sense are remembered, not
/// thrown: no exception may pass through code in C.
class ReportBuilder {
 public:
  explicit ReportBuilder(Report& report);
  ReportBuilder(const ReportBuilder&) = delete;
  ReportBuilder& operator=(const ReportBuilder&) = delete;

  citcat_report* structure() { return &calls_.c; }
  /// After report() returned: what was wrong first, "" where nothing was.
  std::string mistake() const;

 private:
  struct Calls {
    citcat_report c;
    ReportBuilder* builder;
  };
  static ReportBuilder& of(citcat_report* c) { return *reinterpret_cast<Calls*>(c)->builder; }

  void value(const char* key, const char* title, Cell cell, const char* unit);
  void cell(Cell cell);
  void end_table();
  void wrong(const std::string& what);
  /// A key, title or text as the tool gave it; NULL is a mistake and gives "".
  std::string text(const char* given, const char* what);

  Calls calls_;
  std::vector<Report*> groups_;  ///< open; the last one is told
  Table* table_ = nullptr;       ///< open
  std::vector<Cell> row_;        ///< the open row of `table_`
  std::string mistake_;
};

}  // namespace citcat::tools
