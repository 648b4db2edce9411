// null: receives what other tools receive, and does nothing with it: measures the cost of the host.

#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class NullTool final : public Tool {
 public:
  explicit NullTool(Wants wants) : wants_(wants) {}

  Wants wants() const override { return wants_; }
  std::unique_ptr<Tool> part() const override { return std::make_unique<NullTool>(wants_); }
  void follow(Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}
  void report(Report&) const override {}

 private:
  Wants wants_;
};

std::unique_ptr<Tool> make_null(ToolOptions& options, const Setup&) {
  const std::string asks =
      options.one_of("wants", "executions",
                     {"counts", "executions", "references", "walks", "registers", "values"});
  Wants wants;
  wants.counts = asks == "counts";
  wants.executions = asks == "executions";
  wants.references = asks == "references" || asks == "walks" || asks == "values";
  wants.walks = asks == "walks";
  wants.values = asks == "values";
  wants.registers = asks == "registers";
  return std::make_unique<NullTool>(wants);
}

}  // namespace

extern const ToolRow kNullTool{
    "null",
    "Do nothing, to measure what it costs to run a tool",
    "wants=WHAT  counts, executions (default), references, walks, registers or values\n",
    "citcat analyze boot.citcat --tool null:wants=references",
    ToolRow::Merging::exact,
    make_null};

}  // namespace citcat::tools
