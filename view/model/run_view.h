#pragma once
// A recorded run as somebody looks at it in a browser: it goes to any moment of it, answers
// questions about what is there, and gets to know the whole of it on the side. Every question names
// the moment it is about, so that the answer depends on nothing that was asked before.
//
// One thread at a time may use the object.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "debugger/server/call_scan.h"
#include "debugger/target/run_observer.h"
#include "events/archive/recording_file.h"
#include "events/names/symbols.h"
#include "replay/run/replay_timeline.h"
#include "replay/session/known_registers.h"
#include "view/model/moment_text.h"
#include "view/model/query.h"
#include "view/model/register_table.h"
#include "view/model/run_index.h"
#include "view/model/step_recorder.h"

namespace citcat::view {

using Json = nlohmann::ordered_json;

struct RunViewOptions {
  std::string name;  ///< of the recording, for people
  bool check = false;
  ComparisonPolicy policy;
  /// The size of checkpoints in memory, in frames of 4 KiB.
  std::size_t max_frames = std::size_t{1} << 16;
  /// Instructions between them. Whoever looks through a run once, and goes to few places, needs
  /// none: to lay them takes several times as long as to replay.
  std::uint64_t checkpoint_every = std::uint64_t{1} << 19;
  /// Without `check`: how the whole run was found to agree with its evidence before; empty: it was
  /// not compared.
  std::string compared_before;
  /// With `check`: called once, where the whole run is known to agree with its evidence, with the
  /// machine at its end.
  std::function<void(const Machine& at_end)> agreed;
  /// What a replay of the whole run has shown; null: look_further() finds it out.
  std::unique_ptr<RunIndex> known;
  /// Asked now and then; true ends what is being answered.
  std::function<bool()> interrupted;
  /// The longest that one answer may take.
  std::chrono::milliseconds longest{20'000};
};

class RunView;

/// A question, what may be said with it, and what answers it.
struct Question {
  std::string name;
  std::vector<std::string> parameters;
  Json (*answer)(RunView& view, const Query& query);
};

class RunView {
 public:
  /// `file` and `symbols` must outlive the object.
  RunView(const RecordingFile& file, const Symbols& symbols, RunViewOptions options);
  ~RunView();

  /// The answer to a question (docs/formats/view-interface.md). Throws UsageError if it is not one.
  Json answer(const std::string& what, const Query& query);
  static const std::vector<Question>& questions();

  /// Gets to know another `instructions` of the run; false where all of it is known.
  bool look_further(std::uint64_t instructions);
  /// All of it is known, or as much as can be replayed.
  bool knows_all() const { return knows_all_; }

  // For those that answer.
  const RecordingFile& file() const { return file_; }
  const Symbols& symbols() const { return symbols_; }
  const RunViewOptions& options() const { return options_; }
  const RegisterTable& registers() const { return registers_; }
  const RunIndex& index() const { return *index_; }
  ReplayTimeline& timeline() { return *timeline_; }
  const Machine& machine() const { return timeline_->machine(); }
  const BusModel& bus() const { return file_.recording().bus; }
  /// What tells the recording from any other.
  std::string identity() const;

  /// Goes to the moment that `query` names by `at`: a moment, "begin", "end" or "divergence".
  /// Throws UsageError where there is none.
  Moment go_to(const Query& query);
  void go_to(const WantedMoment& wanted);
  /// Goes to a moment or, where the run has none such because a step leads past it, to the last one
  /// before it.
  void go_to_last(const Moment& at);
  /// Somebody is going to ask about the moment where the run is.
  void settle_here() { remember(); }
  /// The state there, with the registers that are not known named as such.
  CpuState state() const;
  /// The linear address of the next instruction, with what runs there.
  std::string process_here() const;
  std::string place(LinearAddr at) const;
  std::string place_in(LinearAddr at, const std::string& process) const;
  /// Lets `listener` observe the run from where it is up to `to`. False where `interrupt` ended
  /// that on the way.
  bool listen(Observer& listener, Detail code, Moment to,
              const ReplayTimeline::Interrupt& interrupt = {});
  /// What ends a search: the time that an answer may take, or who asked for the end.
  ReplayTimeline::Interrupt limit() const;
  bool timed_out() const;
  /// What has not returned where the run is, looked for `reach` instructions back; nullopt
  /// where that took too long.
  std::optional<OpenNest> open_nest(std::uint64_t reach);
  /// Replays `reach` instructions up to here with `calls` as observer, and comes back to where the
  /// run is. False if `interrupt` ended that on the way.
  bool look_back(CallScan& calls, std::uint64_t reach, const ReplayTimeline::Interrupt& interrupt);
  /// Passes the steps of a stretch to `sink`, and comes back to where the run is. False if
  /// `interrupt` ended that on the way: then the last steps are missing. `calls`, which may be
  /// null, observes the same stretch.
  bool record(const WantedMoment& from, Moment to, StepSink& sink,
              const ReplayTimeline::Interrupt& interrupt, CallScan* calls = nullptr);
  std::optional<Position> run_end() const { return timeline_->end(); }

 private:
  void remember();
  void go_to_end();
  void arrive(const WantedMoment& wanted, const ReplayTimeline::Interrupt& interrupt = {});
  /// Throws UsageError where `interrupt` ended it on the way.
  void seek(Position to, const ReplayTimeline::Interrupt& interrupt);

  const RecordingFile& file_;
  const Symbols& symbols_;
  RunViewOptions options_;
  RegisterTable registers_;
  KnownRegisters known_registers_;
  RunObserver observer_;
  std::unique_ptr<ReplayTimeline> timeline_;
  std::unique_ptr<RunIndex> index_;
  bool knows_all_ = false;
  Moment looked_to_;  ///< where look_further() left the run
  struct Remembered {
    Moment moment;
    std::size_t mark = 0;
  };
  std::optional<Remembered> remembered_;
  std::optional<Remembered> end_;  ///< the last moment, once somebody was there
  std::chrono::steady_clock::time_point began_;
};

// Each a part of the list, in a file of its own.
std::vector<Question> state_questions();
std::vector<Question> code_questions();
std::vector<Question> memory_questions();
std::vector<Question> move_questions();
std::vector<Question> run_questions();
std::vector<Question> find_questions();
std::vector<Question> function_questions();
std::vector<Question> origin_questions();

}  // namespace citcat::view
