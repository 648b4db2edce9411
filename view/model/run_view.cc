#include "view/model/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "events/position_text.h"
#include "formats/io/error.h"
#include "view/model/answer_text.h"

namespace citcat::view {

namespace {

constexpr Position kEndOfAll{~std::uint64_t{0} - 1, 0};
/// Moments of one position, or iterations of a REP, that are gone through to find one.
constexpr std::uint32_t kMostSteps = 1 << 20;

TimelineOptions timeline_options(const RunViewOptions& options, RunObserver& observer) {
  TimelineOptions timeline;
  timeline.check = options.check;
  timeline.policy = options.policy;
  timeline.max_frames = options.max_frames;
  timeline.every = options.checkpoint_every;
  timeline.again = [&observer](bool on) { observer.set_deaf(on); };
  return timeline;
}

std::vector<Question> all_questions() {
  std::vector<Question> all;
  for (const auto& part :
       {state_questions(), code_questions(), memory_questions(), move_questions(), run_questions(),
        find_questions(), function_questions(), origin_questions()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

RunView::RunView(const RecordingFile& file, const Symbols& symbols, RunViewOptions options)
    : file_(file),
      symbols_(symbols),
      options_(std::move(options)),
      registers_(file.recording().initial),
      known_registers_(file.recording()),
      timeline_(std::make_unique<ReplayTimeline>(file, &observer_,
                                                 timeline_options(options_, observer_))),
      index_(std::move(options_.known)),
      knows_all_(index_ != nullptr),
      began_(std::chrono::steady_clock::now()) {
  if (knows_all_) return;
  index_ = RunIndex::from_beginning();
  index_->listen_to(timeline_->machine());
}

RunView::~RunView() = default;

const std::vector<Question>& RunView::questions() {
  static const std::vector<Question> all = all_questions();
  return all;
}

Json RunView::answer(const std::string& what, const Query& query) {
  began_ = std::chrono::steady_clock::now();
  for (const Question& question : questions()) {
    if (what != question.name) continue;
    for (const auto& [name, value] : query.values()) {
      if (std::ranges::find(question.parameters, name) != question.parameters.end()) continue;
      throw UsageError(fmt::format("'{}' has no parameter '{}'", what, name));
    }
    Json json = question.answer(*this, query);
    make_printable(json);
    return json;
  }
  throw UsageError("there is no question '" + what + "'");
}

bool RunView::timed_out() const {
  return std::chrono::steady_clock::now() - began_ > options_.longest ||
         (options_.interrupted && options_.interrupted());
}

ReplayTimeline::Interrupt RunView::limit() const {
  return [this] { return timed_out(); };
}

std::string RunView::identity() const { return file_.identity().hex(); }

// ---------------------------------------------------------------------------------------------
// To get there

/// A moment that was gone to is often asked about again.
void RunView::remember() {
  if (remembered_) timeline_->forget(remembered_->mark);
  remembered_ = Remembered{timeline_->moment(), timeline_->mark()};
}

void RunView::go_to(const WantedMoment& wanted) {
  arrive(wanted, limit());
  if (!remembered_ || remembered_->moment != timeline_->moment()) remember();
}

void RunView::arrive(const WantedMoment& wanted, const ReplayTimeline::Interrupt& interrupt) {
  const auto is_it = [&](const Moment& moment) {
    return moment.position == wanted.position &&
           (!wanted.deliveries || moment.deliveries == *wanted.deliveries);
  };
  if (wanted.deliveries && is_it(timeline_->moment())) return;
  if (end_ && wanted.deliveries && is_it(end_->moment)) return timeline_->return_to(end_->mark);
  if (remembered_ && wanted.deliveries && is_it(remembered_->moment)) {
    return timeline_->return_to(remembered_->mark);
  }
  seek(wanted.position, interrupt);
  // Who seeks the first position arrives after what is delivered there.
  if (wanted.position == Position{} && wanted.deliveries.value_or(0) == 0 &&
      timeline_->moment().deliveries != 0) {
    timeline_->rewind();
  }
  if (wanted.deliveries) {
    const Moment moment{*wanted.deliveries, wanted.position};
    // The moment cannot lie behind the instruction, however many deliveries are asked for.
    const auto may_come = [&] {
      return timeline_->moment() < moment &&
             timeline_->position().instruction <= wanted.position.instruction;
    };
    for (std::uint32_t i = 0; may_come() && i < kMostSteps; ++i) {
      if (!timeline_->step() || (i % 256 == 255 && interrupt && interrupt())) break;
    }
  }
  if (!is_it(timeline_->moment())) {
    const auto end = timeline_->end();
    const std::string text = wanted.deliveries ? moment_text({*wanted.deliveries, wanted.position})
                                               : position_text(wanted.position);
    throw UsageError(end && wanted.position > *end
                         ? fmt::format("at: the run ends before {}", text)
                         : fmt::format("at: there is no moment {}", text));
  }
}

void RunView::go_to_last(const Moment& at) {
  seek(at.position, limit());
  if (at.position == Position{} && timeline_->moment() > at) timeline_->rewind();
  for (std::uint32_t i = 0; timeline_->moment() < at && i < kMostSteps; ++i) {
    if (!timeline_->step()) break;
  }
  if (timeline_->moment() > at) timeline_->step_back();
  remember();
}

void RunView::seek(Position to, const ReplayTimeline::Interrupt& interrupt) {
  timeline_->seek(to, interrupt);
  if (timeline_->interrupted())
    throw UsageError(fmt::format("at: the way there took too long, and ended at {}",
                                 position_text(timeline_->position())));
}

Moment RunView::go_to(const Query& query) {
  const std::string at = query.required("at");
  if (at == "begin") {
    go_to(WantedMoment{{}, std::nullopt});
  } else if (at == "end" || at == "divergence") {
    go_to_end();
    if (at == "divergence" && !timeline_->divergence()) {
      throw UsageError("at: the replay agrees with its evidence up to its end");
    }
    remember();
  } else if (const auto wanted = parse_moment(at)) {
    go_to(*wanted);
  } else {
    throw UsageError(
        "at: expected a moment like 123, 123+4 or 123~5, begin, end or divergence, "
        "found '" +
        at + "'");
  }
  return timeline_->moment();
}

/// Once: the last instruction may be a REP that goes on and on.
void RunView::go_to_end() {
  if (end_) return timeline_->return_to(end_->mark);
  seek(kEndOfAll, limit());
  end_ = Remembered{timeline_->moment(), timeline_->mark()};
}

CpuState RunView::state() const {
  CpuState state = timeline_->registers();
  known_registers_.settle(state, timeline_->moment());
  return state;
}

std::string RunView::process_here() const {
  return index_->process_name(machine().engine().address_space());
}

std::string RunView::place_in(LinearAddr at, const std::string& process) const {
  if (symbols_.empty()) return {};
  const auto found = symbols_.find(at, process);
  return found ? place_name(*found) : std::string();
}

std::string RunView::place(LinearAddr at) const { return place_in(at, process_here()); }

// ---------------------------------------------------------------------------------------------
// What happens on the way

bool RunView::listen(Observer& listener, Detail code, Moment to,
                     const ReplayTimeline::Interrupt& interrupt) {
  // Who seeks may come there by a checkpoint, and not by what lies between.
  Observer nobody;
  observer_.set_listener(&listener, code);
  bool whole = true;
  try {
    whole = timeline_->tell_on(to, nobody, false, interrupt);
  } catch (...) {
    observer_.set_listener(nullptr, Detail::nothing);
    throw;
  }
  observer_.set_listener(nullptr, Detail::nothing);
  return whole;
}

bool RunView::look_further(std::uint64_t instructions) {
  if (knows_all_) return false;
  const Position from{index_->told_to(), 0};
  // To seek is to replay from a checkpoint on: only where a question has been elsewhere in between.
  if (from == Position{}) {
    timeline_->rewind();  // before what is delivered there
  } else if (timeline_->moment() != looked_to_) {
    timeline_->seek(from);
  }
  const Moment before = timeline_->moment();
  const Position to{from.instruction + instructions, 0};
  // A REP may have more iterations than there is time for at once.
  const auto is_long = [&] {
    const Position now = timeline_->position();
    const bool goes_on = now.instruction == before.position.instruction;
    return now.iteration >= std::uint64_t{kMostSteps} + (goes_on ? before.position.iteration : 0);
  };
  listen(*index_, Detail::nothing, {0, to}, is_long);
  looked_to_ = timeline_->moment();
  index_->end(looked_to_.position.instruction);
  knows_all_ = timeline_->position() < to && (!timeline_->interrupted() || looked_to_ == before);
  if (knows_all_ && !end_ && !timeline_->interrupted()) {
    end_ = Remembered{looked_to_, timeline_->mark()};
  }
  if (knows_all_ && options_.check && options_.agreed && !timeline_->divergence()) {
    options_.agreed(machine());
  }
  return !knows_all_;
}

bool RunView::record(const WantedMoment& from, Moment to, StepSink& sink,
                     const ReplayTimeline::Interrupt& interrupt, CallScan* calls) {
  const std::size_t here = timeline_->mark();
  arrive(from, interrupt);
  sink.begins(timeline_->moment(), machine().save());
  StepRecorder recorder(machine(), timeline_->moment(), sink, calls);
  // The instruction that shuts the processor down never completes.
  if (index_->shutdown_at() == to.position.instruction) to.position.iteration = 1;
  const bool whole = timeline_->tell_on(to, recorder, true, interrupt);
  recorder.finish(timeline_->moment());
  if (whole) sink.ends(timeline_->moment());
  timeline_->return_to(here);
  timeline_->forget(here);
  return whole;
}

bool RunView::look_back(CallScan& calls, std::uint64_t reach,
                        const ReplayTimeline::Interrupt& interrupt) {
  const Moment here = timeline_->moment();
  const std::uint64_t at = here.position.instruction;
  if (at > reach) {
    arrive(WantedMoment{{at - reach, 0}, std::nullopt}, interrupt);
  } else {
    timeline_->rewind();  // before what is delivered there
  }
  const bool whole = listen(calls, Detail::blocks, here, interrupt);
  arrive(WantedMoment{here.position, here.deliveries});
  return whole;
}

std::optional<OpenNest> RunView::open_nest(std::uint64_t reach) {
  CallScan scan(machine());
  if (!look_back(scan, reach, limit())) return std::nullopt;
  return scan.open();
}

}  // namespace citcat::view
