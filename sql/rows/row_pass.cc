#include "sql/rows/row_pass.h"

#include "sql/rows/count_collector.h"

namespace citcat::sql {

Observer* RowPass::collect(const RowNeeds& needs, std::uint64_t begin, std::uint64_t end) {
  rows = {};
  return tell(std::make_unique<RowCollector>(needs, filter_, names_, contexts_, rows), begin, end);
}

Observer* RowPass::collect(const CountNeeds& needs, std::uint64_t begin, std::uint64_t end) {
  return tell(std::make_unique<CountCollector>(needs, filter_, names_, contexts_), begin, end);
}

Observer* RowPass::tell(std::unique_ptr<tools::Tool> tool, std::uint64_t begin, std::uint64_t end) {
  from = begin;
  to = end;
  ended = false;
  host_.reset();
  names_.restart();
  analysis_ = std::make_unique<tools::Analysis>(std::move(tool));
  tools::HostOptions options;
  options.from = begin;
  options.to = end;
  options.names = &names_;
  options.isolated_tables = isolated_tables_;
  host_ = std::make_unique<tools::ToolHost>(*analysis_, options);
  return host_.get();
}

}  // namespace citcat::sql
