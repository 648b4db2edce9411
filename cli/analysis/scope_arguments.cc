#include "cli/analysis/scope_arguments.h"

#include "cli/parsing/replay_options.h"
#include "tools/host/window_plan.h"

namespace citcat {

void ScopeArguments::define(const CommandParser& parser) {
  parser.add_option(
      "--where", where,
      "Only instructions that meet this condition: process=NAME processor=N level=N "
      "interrupt[=V] syscall[=N] code=PLACE data=FIRST-LAST, combined with & | ! ( )");
  define_symbols(parser, symbols);
  parser.add_option(
      "--by", by,
      "Split the output by process, level or interrupt, or by several of them with commas between");
  parser.add_option(
      "--window", window,
      "Only these parts of the run: 'every 10M for 100k', 'every 1000 calls for 10 calls', 'random "
      "30 of 100k seed 7', 'FROM-TO, FROM-TO', file:FILE or control:PIPE [to FILE]");
}

void ScopeArguments::apply_to(AnalysisPlan& plan) const {
  plan.where = where;
  plan.by = by;
  plan.window = tools::WindowPlan::with_file(window);
  plan.symbols = symbols;
}

}  // namespace citcat
