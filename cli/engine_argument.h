#pragma once
// The option by which a command that replays is told what makes plain code.

#include "cli/parsing/command_parser.h"
#include "replay/run/replay_session.h"

namespace citcat {

/// `--engine fast|unicorn`; `path` keeps what it is without the option.
void define_engine(const CommandParser& parser, ExecutionPath& path);

}  // namespace citcat
