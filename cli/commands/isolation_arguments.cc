#include "cli/commands/isolation_arguments.h"

namespace citcat {

void IsolationArguments::define(CLI::App& app) {
  constexpr double kLeast = 0.1, kMost = 86400;
  CLI::Option* const flag =
      app.add_flag("--isolate", isolate,
                   "Run each tool of a shared object in a process of its own, which may crash");
  app.add_option("--isolate-limit", seconds, "Seconds that such a process may take to answer (10)")
      ->check(CLI::Range(kLeast, kMost))
      ->type_name("SECONDS")
      ->needs(flag);
}

std::optional<std::chrono::milliseconds> IsolationArguments::limit() const {
  if (!isolate) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(seconds * 1000));
}

}  // namespace citcat
