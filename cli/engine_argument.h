#pragma once
// The option by which a command that replays is told what makes plain code.

#include <CLI/CLI.hpp>

#include "replay/run/replay_session.h"

namespace citcat {

/// `--engine fast|unicorn`; `path` keeps what it is without the option.
void define_engine(CLI::App& app, ExecutionPath& path);

}  // namespace citcat
