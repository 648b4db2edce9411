#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/parsing/command_parser.h"
#include "events/position.h"
#include "replay/session/checkpoint_start.h"

namespace citcat {

/// --from and --to of a trace: positions N, or N+K for an iteration of a REP.
struct RangeArguments {
  std::string from, to;

  /// Both throw UsageError for a text that is not a position. Without --to it lies after any run.
  Position first() const;
  Position end() const;
  /// The instructions that have to be replayed. Throws UsageError when --from lies after --to.
  ReplayRange instructions() const;
  /// --to where it lies within a REP.
  std::optional<Position> end_within() const;
  /// One of them lies within a REP.
  bool within_repeat() const { return first().iteration != 0 || end().iteration != 0; }

  /// Nothing was found in `file`, which ends after so many instructions: throws UsageError when it
  /// ends before --from.
  void require_reached(const std::string& file, std::uint64_t instructions) const;

  void define(const CommandParser& parser);
};

}  // namespace citcat
