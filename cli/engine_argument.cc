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
          "What runs ordinary code: fast, the interpreter (default), or unicorn, the engine that "
          "otherwise runs only the rest; the results are the same")
      .one_of({"fast", "unicorn"});
}

}  // namespace citcat
