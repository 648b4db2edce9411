#pragma once
// Rows of a query as text, comma-separated values or JSON.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sql/database/database.h"

namespace citcat {

enum class ResultForm : std::uint8_t {
  columns,  ///< aligned, with a line under the names
  box,      ///< the same within lines, for a terminal
  csv,      ///< RFC 4180, but for line ends; a header line first
  json,     ///< one line for each statement: an array of objects
};

/// Columns and boxes have the widths of the first rows, and hexadecimal addresses.
std::unique_ptr<sql::ResultSink> make_result_printer(ResultForm form,
                                                     std::function<void(std::string_view)> print);

}  // namespace citcat
