#include "sql/compare/log_difference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sql/compare/plain_run.h"

namespace citcat::sql {

namespace {

std::uint64_t address_of(const PlainRun& run, const LogForm& form) {
  const tools::StaticInstruction& i = run.instruction();
  return form.offsets ? i.offset : i.linear.value;
}

std::vector<std::uint8_t> bytes_of(const PlainRun& run) {
  const DecodedInstruction& info = run.instruction().info;
  return {info.bytes.begin(), info.bytes.begin() + info.length};
}

/// The entry's bytes are those of this instruction. A log may have only the first bytes of an
/// instruction, or more than there are.
bool has_bytes(const EmulatorLogEntry& entry, const std::vector<std::uint8_t>& bytes) {
  const auto told = static_cast<std::ptrdiff_t>(std::min(entry.bytes.size(), bytes.size()));
  return std::equal(bytes.begin(), bytes.begin() + told, entry.bytes.begin());
}

/// The run executes the entry next.
bool executes(const PlainRun& run, const EmulatorLogEntry& entry, const LogForm& form) {
  return address_of(run, form) == entry.at && has_bytes(entry, bytes_of(run));
}

/// A REP, whose iterations some logs have an entry for each.
struct RepeatedInstruction {
  std::uint64_t at = 0;
  std::vector<std::uint8_t> bytes;
};

/// Where the run may be after an entry of the log.
struct LogPlace {
  PlainRun run;
  std::optional<std::uint64_t> next = {};  ///< address at which its block goes on
  std::uint32_t most = 0;                  ///< instructions left in it, with this one; 0: any
  std::optional<RepeatedInstruction> repeated = {};  ///< the entry, where it is a REP
  bool in_handler = false;                           ///< the entry is of an interrupt's handler
  /// For a place that no entry follows: where a handler was left that the log has the beginning of.
  std::optional<ComparedInstruction> left = {};

  std::uint64_t position() const { return run.ended() ? ~std::uint64_t{0} : run.position(); }
};

/// The address at which the block of the current instruction goes on, with `most` instructions
/// left; nullopt if it ends here, as it does after a branch.
std::optional<std::uint64_t> next_in_block(const PlainRun& run, std::uint32_t most) {
  const tools::StaticInstruction& i = run.instruction();
  if (most == 1 || i.info.control_flow) return std::nullopt;
  return i.behind().value;
}

LogPlace behind_entry(PlainRun run, const LogForm& form, std::uint32_t most) {
  const bool in_handler = run.in_interrupt();
  std::optional<RepeatedInstruction> repeated;
  if (run.instruction().info.is_repeated()) repeated = {address_of(run, form), bytes_of(run)};
  const auto next = next_in_block(run, most);
  run.advance();
  return {run, next, most == 0 ? 0 : most - 1, std::move(repeated), in_handler};
}

/// Goes on from `place` to where the run executes the entry: at once; where the log names blocks,
/// after instructions that lie one after the other; or after a handler that the log does not
/// have. A block may end before the entry or go on with it, to come back to it by a jump: then
/// there are two places. Where there is none, `place` is where the run and the log part.
bool follow(LogPlace& place, const EmulatorLogEntry& entry, const LogForm& form,
            std::vector<LogPlace>& to) {
  PlainRun& run = place.run;
  const bool repeats =
      place.repeated && place.repeated->at == entry.at && has_bytes(entry, place.repeated->bytes);
  if (repeats && (run.ended() || address_of(run, form) != entry.at)) {
    to.push_back(place);
    return false;
  }
  while (!run.ended()) {
    const bool goes_on = place.next == address_of(run, form);
    if (executes(run, entry, form)) {
      to.push_back(behind_entry(run, form, entry.most));
      if (!goes_on) break;
    }
    if (goes_on) {
      place.next = next_in_block(run, place.most);
      if (place.most != 0) --place.most;
      run.advance();
    } else if (run.in_interrupt()) {
      if (place.in_handler && !place.left) place.left = compared_instruction(run);
      run.leave_interrupt();
    } else {
      break;
    }
  }
  return true;
}

}  // namespace

LogDifference difference_of(RowSource& source, std::uint64_t from, EmulatorLog& log) {
  constexpr std::size_t kMostPlaces = 16;
  LogDifference found;
  std::vector<LogPlace> places;
  {
    PlainRun run(source, from);
    if (run.ended()) return found;
    places.push_back({run});
  }
  EmulatorLogEntry entry;
  bool more = log.next(entry);
  const std::uint64_t first = address_of(places[0].run, log.form());
  while (more && entry.at != first) more = log.next(entry);
  found.began = more;
  while (more) {
    std::vector<LogPlace> to;
    bool goes_on = false;
    for (LogPlace& place : places) goes_on |= follow(place, entry, log.form(), to);
    if (to.empty()) break;
    std::vector<LogPlace> different;
    for (const LogPlace& place : to) {
      const bool known = std::any_of(different.begin(), different.end(), [&](const LogPlace& p) {
        return p.position() == place.position();
      });
      if (!known && different.size() < kMostPlaces) different.push_back(place);
    }
    places.swap(different);
    if (goes_on) ++found.compared;
    more = log.next(entry);
  }
  // The place that the run came farthest to.
  const auto last = std::max_element(
      places.begin(), places.end(),
      [](const LogPlace& a, const LogPlace& b) { return a.position() < b.position(); });
  found.differs = more && (last->left || !last->run.ended());
  if (more) found.log = entry;
  if (more && last->left) {
    found.run = last->left;
  } else if (!last->run.ended()) {
    found.run = compared_instruction(last->run);
  }
  return found;
}

}  // namespace citcat::sql
