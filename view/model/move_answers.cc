// Steps from one moment to another, in both directions.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "events/machine/cpu_place.h"
#include "formats/io/error.h"
#include "view/model/answer_text.h"
#include "view/model/nest_lines.h"

namespace citcat::view {

namespace {

/// Instructions looked back for the call that runs.
constexpr std::array<std::uint64_t, 3> kReaches{20'000, 500'000, 10'000'000};

bool is_call(InstructionClass kind) {
  return kind == InstructionClass::call || kind == InstructionClass::far_call;
}
bool is_return(InstructionClass kind) {
  return kind == InstructionClass::ret || kind == InstructionClass::far_return ||
         kind == InstructionClass::iret;
}

/// How a move ended, in a word or two for whoever asks (docs/formats/view-interface.md).
using Why = const char*;
constexpr Why kMoved = "moved", kEnd = "end", kBeginning = "beginning", kTooLong = "took too long",
              kNoCall = "no call";

Why why_of(const ReplayTimeline::Stop& stop, bool back) {
  switch (stop.why) {
    case ReplayTimeline::Stop::Why::hit:
      return kMoved;
    case ReplayTimeline::Stop::Why::interrupted:
      return kTooLong;
    case ReplayTimeline::Stop::Why::end:
      break;
  }
  return back ? kBeginning : kEnd;
}

/// The place of a return address, and the base of the code segment in which it is an offset.
struct Slot {
  LinearAddr at;
  unsigned bytes = 4;
  LinearAddr base = {};
};

/// A stretch of the run up to where a procedure, a handler or a REP has ended.
class RunToEnd {
 public:
  /// It ends at one of `to`, with the stack pointer back at `there`.
  RunToEnd(RunView& view, std::vector<LinearAddr> to, std::optional<StackPlace> there)
      : view_(view), there_(there) {
    std::sort(to.begin(), to.end());
    stops_.code = std::move(to);
  }
  /// A store to the slot changes where the procedure returns to, as in thunks that jump by RET, or
  /// shows that it has returned elsewhere.
  void watch(const Slot& slot) {
    const auto at = view_.machine().find(slot.at);
    if (!at || at->offset_in_page() + slot.bytes > kPageSize) return;
    slot_ = slot;
    stops_.memory.push_back({*at, slot.bytes, false, true});
  }
  Why run() {
    for (;;) {
      const auto stop = view_.timeline().run_to_stop(stops_, view_.limit());
      const Why why = why_of(stop, false);
      if (why != kMoved) return why;
      const bool stores = std::any_of(stop.met.begin(), stop.met.end(), [](const StopHit& hit) {
        return hit.access == AccessKind::data && !hit.outside;
      });
      if (stores && note_store()) return kMoved;
      if (is_there()) return kMoved;
      if (view_.timed_out()) return kTooLong;
    }
  }

 private:
  bool is_there() const {
    const std::vector<LinearAddr>& to = stops_.code;
    return std::binary_search(to.begin(), to.end(), view_.machine().next_linear()) &&
           (!there_ || has_come_back(stack_place(view_.machine()), *there_));
  }
  /// Returns whether the store shows that the procedure had returned before.
  bool note_store() {
    const auto offset = number_at(view_.machine(), slot_.at, slot_.bytes);
    const bool is_wide = is_in_64_bit_mode(view_.machine().save());
    if (offset) {
      const std::uint64_t to = slot_.base.value + *offset;
      stops_.code = {is_wide ? LinearAddr{to} : linear32(0, static_cast<std::uint32_t>(to))};
    }
    const Moment behind = view_.timeline().moment();
    view_.timeline().step_back();
    const StackPlace before = stack_place(view_.machine());
    const bool is_over = slot_.at < before.top && has_come_back(before, {before.space, slot_.at});
    view_.go_to(WantedMoment{behind.position, behind.deliveries});
    return is_over;
  }

  RunView& view_;
  StopSet stops_;
  std::optional<StackPlace> there_;
  Slot slot_;
};

Why step(RunView& view) { return view.timeline().step() ? kMoved : kEnd; }
Why step_back(RunView& view) { return view.timeline().step_back() ? kMoved : kBeginning; }

/// Over a call, or all iterations of a REP.
Why over(RunView& view) {
  const LinearAddr at = view.machine().next_linear();
  const DecodedInstruction info = code_at(view, at).info;
  const LinearAddr behind =
      info.bits64 ? LinearAddr{at.value + info.length} : at.plus32(info.length);
  const bool calls = is_call(info.kind);
  if (calls || info.kind == InstructionClass::int_n) {
    const std::uint64_t offset = instruction_pointer(view.machine().save());
    RunToEnd run(view, {behind}, stack_place(view.machine()));
    if (step(view) == kEnd) return kEnd;
    // The call has just stored the return address, unless it faulted.
    const LinearAddr top = stack_pointer(view.machine());
    const unsigned bytes = info.bits64 ? 8 : info.operand_bytes;
    const std::uint64_t mask = bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
    const auto stored = number_at(view.machine(), top, bytes);
    if (calls && stored == ((offset + info.length) & mask)) {
      run.watch({top, bytes, LinearAddr{behind.value - *stored}});
    }
    return run.run();
  }
  if (info.is_repeated()) return RunToEnd(view, {behind}, std::nullopt).run();
  return step(view);
}

/// To the call whose return has just run: what stored its return address last.
Why over_back(RunView& view) {
  if (step_back(view) == kBeginning) return kBeginning;
  const LinearAddr at = view.machine().next_linear();
  const DecodedInstruction info = code_at(view, at).info;
  if (info.is_repeated()) {
    // To its first iteration.
    while (view.timeline().position().iteration != 0 && !view.timed_out()) {
      if (step_back(view) == kBeginning) break;
    }
    return kMoved;
  }
  if (!is_return(info.kind)) return kMoved;
  const Moment returned = view.timeline().moment();
  const auto slot = view.machine().find(stack_pointer(view.machine()));
  if (!slot) return kMoved;
  StopSet stops;
  stops.memory.push_back({*slot, 1, false, true});
  const auto stop = view.timeline().run_back_to_stop(stops, view.limit());
  const bool calls = stop.hit && (info.kind == InstructionClass::iret ||
                                  is_call(code_at(view, view.machine().next_linear()).info.kind));
  // A return address that was made otherwise has no call to go back to.
  if (!calls) view.go_to(WantedMoment{returned.position, returned.deliveries});
  return stop.why == ReplayTimeline::Stop::Why::interrupted ? kTooLong : kMoved;
}

/// What runs at a moment: a call, or the handler of an event.
struct Running {
  std::optional<OpenCall> call;
  std::optional<InterruptNest::Entered> entered;
  Why why_not = kNoCall;  ///< if nothing was found
};

/// The innermost one that has not returned, except SYSENTER, which stores no return address.
Running running_at(RunView& view) {
  const std::uint64_t at = view.timeline().position().instruction;
  for (const std::uint64_t reach : kReaches) {
    const auto open = view.open_nest(reach);
    if (!open) return {std::nullopt, std::nullopt, kTooLong};
    for (const NestLine& line : nest_lines(*open)) {
      if (line.call != nullptr) return {*line.call, std::nullopt};
      if (line.entered->call != InstructionClass::sysenter) return {std::nullopt, *line.entered};
    }
    if (reach >= at) break;
  }
  return {};
}

Why out(RunView& view) {
  const Running running = running_at(view);
  if (const auto& call = running.call) {
    RunToEnd run(view, {call->return_to},
                 StackPlace{call->space, LinearAddr{call->slot.value + 1}});
    run.watch(
        {call->slot, call->slot_bytes, LinearAddr{call->return_to.value - call->return_offset}});
    return run.run();
  }
  if (!running.entered) return running.why_not;
  // A fault returns to the instruction, an INT n or a SYSCALL behind it.
  const LinearAddr from = running.entered->from;
  const DecodedInstruction info = code_at(view, from).info;
  return RunToEnd(view, {from, LinearAddr{from.value + info.length}}, running.entered->stack).run();
}

/// Goes back to the call, to the instruction that faulted, or to where an interrupt came.
Why out_back(RunView& view) {
  const Running running = running_at(view);
  if (!running.call && !running.entered) return running.why_not;
  const Moment here = view.timeline().moment();
  view.go_to(WantedMoment{running.call ? running.call->at : running.entered->at, std::nullopt});
  return view.timeline().moment() == here ? step_back(view) : kMoved;
}

struct Move {
  const char* name;
  Why (*go)(RunView& view);
};
constexpr std::array<Move, 6> kMoves{{{"step", step},
                                      {"back", step_back},
                                      {"over", over},
                                      {"over-back", over_back},
                                      {"out", out},
                                      {"out-back", out_back}}};

/// One move, as keys of a debugger make it.
Json answer_move(RunView& view, const Query& query) {
  view.go_to(query);
  const std::string how = query.required("how");
  const auto move =
      std::find_if(kMoves.begin(), kMoves.end(), [&](const Move& m) { return how == m.name; });
  Why why = kMoved;
  if (move != kMoves.end()) {
    why = move->go(view);
  } else if (how == "run" || how == "run-back") {
    StopSet stops;
    stops.code.push_back(LinearAddr{query.hexadecimal("address")});
    const bool back = how == "run-back";
    why = why_of(back ? view.timeline().run_back_to_stop(stops, view.limit())
                      : view.timeline().run_to_stop(stops, view.limit()),
                 back);
  } else {
    throw UsageError(
        "how: expected step, over, out, run or one of them with -back (back for a "
        "step), found '" +
        how + "'");
  }
  view.settle_here();
  Json json = here(view);
  json["why"] = why;
  return json;
}

}  // namespace

std::vector<Question> move_questions() { return {{"move", {"at", "how", "address"}, answer_move}}; }

}  // namespace citcat::view
