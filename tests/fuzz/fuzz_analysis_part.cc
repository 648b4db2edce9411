// Shares of an analysis on any bytes. Their hash is made right first, which no mutation finds.

#include <cstdint>
#include <vector>

#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/hash.h"
#include "fuzz/fuzz_target.h"
#include "tools/host/analysis.h"
#include "tools/host/analysis_part.h"
#include "tools/list/tool_list.h"

namespace {

using namespace citcat;

void load_state(const tools::AnalysisPart& part) {
  std::vector<tools::ToolOptions> requests;
  for (const std::string& tool : part.tools) {
    if (tool.find(':') != std::string::npos) return;  // large tables are no fault
    requests.push_back(tools::ToolOptions::parse(tool));
  }
  tools::Setup setup;
  setup.machine = part.machine;
  setup.begins = part.number == 1;
  tools::Analysis analysis(
      tools::find_tools(std::move(requests)), setup,
      part.by.empty() ? std::vector<tools::Split>{} : tools::parse_splits(part.by));
  if (!analysis.serial_tools().empty()) return;
  ByteReader in(part.state, "state");
  analysis.load(in);
  tools::Report report;
  analysis.report(report);
}

}  // namespace

CITCAT_FUZZ_TARGET(analysis_part) {
  constexpr std::size_t kHashBytes = 16;
  try {
    ByteWriter bytes;
    bytes.bytes({data, size > kHashBytes ? size - kHashBytes : size});
    const Hash128 hash = hash128(bytes.view());
    bytes.u64(hash.low);
    bytes.u64(hash.high);
    load_state(tools::parse_analysis_part(bytes.view(), "input"));
  } catch (const Error&) {
  }
  return 0;
}
