#pragma once
// Formats of other programs in which a run can be written. Each is a tool whose result is a file:
// one source file, one row, one page in docs/export/. Code that writes a run uses this table.

#include <string>
#include <vector>

#include "tools/host/tool.h"

namespace citcat::tools {

struct ExporterRow {
  const ToolRow* tool;
  /// Endings of files that are of this format without `--format`, with blanks between.
  const char* endings;
  /// What of the run is written unless --where says otherwise; empty: all.
  const char* where;
  /// Puts together what several processors wrote, each to one of `parts`, which it removes. Null
  /// where each keeps a file of its own. Throws IoError.
  void (*join)(const std::vector<std::string>& parts, const std::string& path) = nullptr;
};

/// Folders of DynamoRIO's traces, as one with a file for each processor.
void join_drmemtrace(const std::vector<std::string>& parts, const std::string& path);

/// In the order of docs/export/README.md.
const std::vector<ExporterRow>& exporter_list();
/// Null if there is no format of that name.
const ExporterRow* find_exporter(const std::string& name);
/// The tool of that format.
const ToolRow* find_exporter_tool(const std::string& name);
/// By the ending of the path, which may be followed by .zst; null where none says so.
const ExporterRow* exporter_of_path(const std::string& path);

}  // namespace citcat::tools
