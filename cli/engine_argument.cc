#include "cli/engine_argument.h"

#include <string>

namespace citcat {

void define_engine(CLI::App& app, ExecutionPath& path) {
  app.add_option_function<std::string>(
         "--engine",
         [&path](const std::string& name) {
           path = name == "unicorn" ? ExecutionPath::instructions : ExecutionPath::blocks;
         },
         "What makes plain code: fast, the interpreter (default), or unicorn, the engine of record "
         "for everything; the results are the same")
      ->check(CLI::IsMember({"fast", "unicorn"}))
      ->type_name("NAME");
}

}  // namespace citcat
