#pragma once
// The option --engine of commands that replay: it says what executes ordinary code.

#include "cli/parsing/command_parser.h"
#include "replay/run/replay_session.h"

namespace citcat {

/// `--engine fast|unicorn`; `path` keeps what it is without the option.
void define_engine(const CommandParser& parser, ExecutionPath& path);

}  // namespace citcat
