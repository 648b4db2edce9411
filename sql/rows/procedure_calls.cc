#include "sql/rows/procedure_calls.h"

#include <utility>

namespace citcat::sql {

void ProcedureCalls::called(tools::ProcedureNumber caller, tools::ProcedureNumber /*procedure*/) {
  caller_ = caller;
  if (entered_ == kNone) {
    is_told_first_ = true;
    return;
  }
  ProcedureCallRow& row = rows_.calls[entered_];
  row.is_call = true;
  row.caller = caller;
  entered_ = kNone;
}

/// The number of a path is that of its row, from 1 on.
tools::CallPath ProcedureCalls::entered(tools::CallPath /*under*/, tools::ProcedureNumber procedure,
                                        bool is_base) {
  ProcedureCallRow& row = rows_.calls.emplace_back();
  row.at = at_ + follower_.part().first;
  row.context = context_;
  row.procedure = procedure;
  // Told before the frame is there: of a jump, while that of the jumping procedure is.
  const auto open = static_cast<std::uint32_t>(follower_.stacks().depth());
  row.depth = is_told_first_ ? open : open + 1;
  row.is_call = is_told_first_;
  row.caller = caller_;
  if (!is_told_first_ && !is_no_call_ && !is_base) entered_ = rows_.calls.size() - 1;
  jumps_ = !is_base && (is_told_first_ || is_no_call_);
  is_told_first_ = is_no_call_ = false;
  return static_cast<tools::CallPath>(rows_.calls.size());
}

void ProcedureCalls::left(const tools::CallFrame& frame, std::uint64_t instructions,
                          bool /*outermost*/, bool /*outermost_arc*/) {
  const bool jumped = std::exchange(jumps_, false);
  if (frame.path == 0) return;
  rows_.calls[frame.path - 1].instructions = instructions;
  if (jumped) {
    rows_.calls.back().jumped = frame.path;
    return;
  }
  // All procedures that jumped on the way to this one return with it.
  std::uint64_t all = 0;
  for (std::uint32_t path = frame.path; path != 0; path = rows_.calls[path - 1].jumped) {
    ProcedureCallRow& row = rows_.calls[path - 1];
    all += row.instructions;
    row.instructions = all;
    row.ended = true;
  }
}

}  // namespace citcat::sql
