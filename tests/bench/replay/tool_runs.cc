#include "bench/replay/tool_runs.h"

#include "replay/run/replay_session.h"
#include "tools/export/exporter_list.h"
#include "tools/guest/guest_names.h"
#include "tools/guest/recording_symbols.h"
#include "tools/host/tool_host.h"
#include "tools/list/tool_list.h"

namespace citcat::bench {

std::vector<std::string> all_tools() {
  std::vector<std::string> all;
  for (const tools::ToolRow* const row : tools::tool_list()) {
    const std::string name = row->name;
    if (name == "watch") {
      all.push_back(name + ":at=c0000000-c0000fff");
    } else if (name == "mdl") {
      all.push_back(name + ":metric=cpu@/Level/*");
    } else {
      all.push_back(name);
    }
  }
  all.emplace_back("cache:model=i486");
  return all;
}

std::vector<std::string> all_exporters() {
  std::vector<std::string> all;
  for (const tools::ExporterRow& row : tools::exporter_list()) all.emplace_back(row.tool->name);
  return all;
}

ToolRun::ToolRun(const RecordingFile& file)
    : file_(file), symbols_(tools::known_symbols(file, {})) {}

std::uint64_t ToolRun::run(const std::string& tool) const {
  tools::GuestNames names(symbols_);
  tools::Setup setup;
  setup.names = &names;
  setup.recording = &file_.recording();
  setup.machine = tools::MachineFacts::of(file_.recording());
  setup.output = "bench.export";
  tools::Analysis analysis(tools::find_tools({tools::ToolOptions::parse(tool)}), setup, {});
  tools::HostOptions options;
  options.names = &names;
  tools::ToolHost host(analysis, options);
  SessionOptions session;
  session.check = false;
  session.walks = analysis.walks();
  const std::uint64_t instructions = ReplaySession(file_, &host, session).run().instructions;
  host.finish();
  tools::Report report;
  analysis.report(report);
  return instructions;
}

}  // namespace citcat::bench
