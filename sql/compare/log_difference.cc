#include "sql/compare/log_difference.h"

#include "sql/compare/plain_run.h"

namespace citcat::sql {

namespace {

std::uint64_t address_of(const PlainRun& run, const LogForm& form) {
  const tools::StaticInstruction& i = run.instruction();
  return form.offsets ? i.offset : i.linear.value;
}

/// Of what lies behind an instruction.
std::uint64_t behind(const PlainRun& run, const LogForm& form) {
  const tools::StaticInstruction& i = run.instruction();
  return form.offsets ? i.offset + i.info.length : i.behind().value;
}

/// Goes on to where the run executes `address`: at once; where the log names blocks, behind
/// instructions that lie one behind the other; or behind a handler that the log does not have, or
/// has the beginning of: `left` is where that was left.
bool go_to(PlainRun& run, std::uint64_t address, std::optional<std::uint64_t> next,
           const LogForm& form, std::optional<ComparedInstruction>& left) {
  for (;;) {
    if (run.ended()) return false;
    if (address_of(run, form) == address) return true;
    if (run.in_interrupt()) {
      left = compared_instruction(run);
      run.leave_interrupt();
      continue;
    }
    if (!form.blocks || next != address_of(run, form)) return false;
    next = behind(run, form);
    run.advance();
  }
}

}  // namespace

LogDifference difference_of(RowSource& source, std::uint64_t from, EmulatorLog& log) {
  LogDifference found;
  PlainRun run(source, from);
  EmulatorLogEntry entry;
  bool more = log.next(entry);
  if (run.ended()) return found;
  while (more && entry.at != address_of(run, log.form())) more = log.next(entry);
  found.began = more;
  std::optional<std::uint64_t> next, repeated;
  std::optional<ComparedInstruction> left;
  bool in_handler = false;  ///< the log has the beginning of the handler that runs
  while (more) {
    // Some logs have an entry for each iteration of a REP.
    if (repeated == entry.at && (run.ended() || address_of(run, log.form()) != entry.at)) {
      more = log.next(entry);
      continue;
    }
    left.reset();
    if (!go_to(run, entry.at, next, log.form(), left)) break;
    in_handler = run.in_interrupt();
    ++found.compared;
    next = behind(run, log.form());
    repeated = run.instruction().info.is_repeated() ? std::optional(entry.at) : std::nullopt;
    run.advance();
    more = log.next(entry);
  }
  // Within a handler that both have, and not behind it.
  if (!in_handler || !more) left.reset();
  found.differs = more && (left.has_value() || !run.ended());
  if (more) found.log = entry;
  if (left) {
    found.run = left;
  } else if (!run.ended()) {
    found.run = compared_instruction(run);
  }
  return found;
}

}  // namespace citcat::sql
