#pragma once
// SQLite over the tables of a recording: read-only, in memory, nothing is stored.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sql/rows/row_source.h"
#include "sql/tables/cell.h"

namespace citcat::sql {

struct ResultColumn {
  std::string name;
  bool is_address = false;  ///< it comes straight from such a column of a table
};

/// Is given what a statement finds.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  virtual void begin(std::span<const ResultColumn> columns) = 0;
  /// Valid during the call. A blob comes as hexadecimal digits.
  virtual void row(std::span<const Cell> cells) = 0;
  virtual void end() = 0;
};

class Database {
 public:
  /// `sources`, one of each processor and at least one, must outlive the object. `poll`, which may
  /// be empty, is called now and then while a statement runs; what it throws ends that.
  Database(std::vector<RowSource*> sources, std::function<void()> poll);
  Database(RowSource& source, std::function<void()> poll)
      : Database(std::vector<RowSource*>{&source}, std::move(poll)) {}
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs all statements of a text. Throws UsageError for anything that is not a query,
  /// "query:OFFSET: ..." in the text, and whatever the rows throw.
  void run(const std::string& text, ResultSink& sink);
  /// The text ends with a whole statement.
  static bool is_complete(const std::string& text);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace citcat::sql
