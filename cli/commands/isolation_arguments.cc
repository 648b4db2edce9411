#include "cli/commands/isolation_arguments.h"

namespace citcat {

void IsolationArguments::define(const CommandParser& parser) {
  constexpr double kLeast = 0.1, kMost = 86400;
  const ParserOption flag = parser.add_flag("--isolate", isolate,
                                            "Run each tool in a shared object as a process of its "
                                            "own, so that a crash does not end citcat");
  parser
      .add_option("--isolate-limit", seconds,
                  "With --isolate: seconds that such a process may take to answer, 10 by default")
      .in_range(kLeast, kMost)
      .type_name("SECONDS")
      .needs(flag);
}

std::optional<std::chrono::milliseconds> IsolationArguments::limit() const {
  if (!isolate) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(seconds * 1000));
}

}  // namespace citcat
