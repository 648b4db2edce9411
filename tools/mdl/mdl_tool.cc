// mdl: metrics in the metric description language, at foci (docs/mdl.md).

#include <memory>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "tools/host/tool.h"
#include "tools/mdl/mdl_run.h"

namespace citcat::tools {
namespace {

/// What the command asks for.
struct MdlQuestion {
  mdl::Library library;
  std::vector<mdl::MetricRequest> metrics;
};

class MdlTool final : public Tool {
 public:
  MdlTool(std::shared_ptr<const MdlQuestion> question, const NameSource* names)
      : question_(std::move(question)),
        names_(names),
        run_(std::make_unique<mdl::MdlRun>(question_->library, question_->metrics, names)) {}

  Wants wants() const override { return run_->wants(); }
  void* code(const StaticBlock& block) override { return run_->code(block); }
  void run(void* mine, const Execution& execution, const Context& context) override {
    run_->run(mine, execution, context);
  }
  void accesses(std::span<const OtherAccess> all, const Context& context) override {
    run_->accesses(all, context);
  }
  void event(const MachineEvent& event, const Context& context) override {
    run_->event(event, context);
  }
  void unfinished(Position at) override { run_->unfinished(at); }
  void left_scope(const Context& context) override { run_->left_scope(context); }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<MdlTool>(question_, names_);
  }
  void follow(Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}

  void report(Report& report) const override {
    run_->end();
    Table& table = report.table("metrics", "Metrics", mdl::metric_columns());
    run_->report(table);
  }

 private:
  std::shared_ptr<const MdlQuestion> question_;
  const NameSource* names_;
  std::unique_ptr<mdl::MdlRun> run_;
};

std::unique_ptr<Tool> make_mdl(ToolOptions& options, const Setup& setup) {
  auto question = std::make_shared<MdlQuestion>();
  for (const std::string& file : options.list("file")) question->library.add_file(file);
  for (const std::string& metric : options.list("metric")) {
    question->metrics.push_back(mdl::parse_metric_request(metric));
  }
  if (question->metrics.empty()) {
    throw UsageError("mdl: expected metric=METRIC@FOCUS, one of " +
                     question->library.metric_names());
  }
  return std::make_unique<MdlTool>(std::move(question), setup.names);
}

}  // namespace

extern const ToolRow kMdlTool{
    "mdl",
    "Measure metrics written in MDL, the metric description language",
    "file=FILE+...  files with metrics in MDL\n"
    "metric=METRIC@PATH;PATH...+...  what to measure, and where: /Code/M/P /Process/P /Level/N "
    "/Interrupt/V /Syscall/S /Port/N /Data/FIRST-LAST /Window/N, with wildcards\n",
    "citcat analyze boot.citcat --tool 'mdl:metric=cpu@/Process/*'",
    ToolRow::Merging::serial,
    make_mdl};

}  // namespace citcat::tools
