#include "cli/engine_argument.h"

#include <map>
#include <string>

namespace citcat {

void define_engine(CLI::App& app, ExecutionPath& path) {
  static const std::map<std::string, ExecutionPath> kEngines = {
      {"fast", ExecutionPath::blocks}, {"unicorn", ExecutionPath::instructions}};
  app.add_option("--engine", path,
                 "What makes plain code: fast, the interpreter (default), or unicorn, the engine "
                 "of record for everything; the results are the same")
      ->transform(CLI::CheckedTransformer(kEngines).description(""))
      ->type_name("NAME");
}

}  // namespace citcat
