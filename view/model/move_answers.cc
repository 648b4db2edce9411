// Steps from one moment to another, in both directions.

#include <algorithm>
#include <array>
#include <optional>

#include "formats/io/error.h"
#include "view/model/answer_text.h"

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

/// Runs on to the instruction at `to`, with the stack pointer back where `there` says.
Why run_until(RunView& view, LinearAddr to, const std::optional<StackPlace>& there) {
  StopSet stops;
  stops.code.push_back(to);
  for (;;) {
    const auto stop = view.timeline().run_to_stop(stops, view.limit());
    const Why why = why_of(stop, false);
    const bool returned = !there || has_come_back(stack_place(view.machine()), *there);
    if (why != kMoved || returned) return why;
    if (view.timed_out()) return kTooLong;
  }
}

Why step(RunView& view) { return view.timeline().step() ? kMoved : kEnd; }
Why step_back(RunView& view) { return view.timeline().step_back() ? kMoved : kBeginning; }

/// Over a call, or all iterations of a REP.
Why over(RunView& view) {
  const LinearAddr at = view.machine().next_linear();
  const CodeHere code = code_at(view, at);
  const DecodedInstruction& info = code.info;
  const LinearAddr behind =
      info.bits64 ? LinearAddr{at.value + info.length} : at.plus32(info.length);
  if (is_call(info.kind) || info.kind == InstructionClass::int_n) {
    return run_until(view, behind, stack_place(view.machine()));
  }
  if (info.is_repeated()) return run_until(view, behind, std::nullopt);
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

struct RunningCall {
  std::optional<OpenCall> call;
  Why why_not = kNoCall;  ///< without one
};

/// The call that runs here.
RunningCall running_call(RunView& view) {
  const std::uint64_t at = view.timeline().position().instruction;
  for (const std::uint64_t reach : kReaches) {
    const auto open = view.open_nest(reach);
    if (!open) return {std::nullopt, kTooLong};
    if (!open->calls.empty()) return {open->calls.front()};
    if (reach >= at) break;
  }
  return {};
}

Why out(RunView& view) {
  const auto [call, why_not] = running_call(view);
  if (!call) return why_not;
  return run_until(view, call->return_to,
                   StackPlace{call->space, LinearAddr{call->slot.value + 1}});
}

Why out_back(RunView& view) {
  const auto [call, why_not] = running_call(view);
  if (!call) return why_not;
  view.go_to(WantedMoment{call->at, std::nullopt});
  return kMoved;
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
