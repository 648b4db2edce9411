#include "cli/engine_argument.h"

#include <string>

namespace citcat {

void define_engine(const CommandParser& parser, ExecutionPath& path) {
  parser
      .on_option(
          "--engine",
          [&path](const std::string& name) {
            path = name == "unicorn" ? ExecutionPath::instructions : ExecutionPath::blocks;
          },
          "What makes plain code: fast, the interpreter (default), or unicorn, the engine of "
          "record for everything; the results are the same")
      .one_of({"fast", "unicorn"})
      .type_name("NAME");
}

}  // namespace citcat
