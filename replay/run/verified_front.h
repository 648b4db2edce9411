#pragma once
// Compares a run with its evidence, once, as far as it has been asked to.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/run/replay_session.h"
#include "replay/session/replayer.h"

namespace citcat {

class VerifiedFront {
 public:
  struct Options {
    ComparisonPolicy policy;
    std::uint64_t every = 0;  ///< instructions between two calls of `passed`
    /// Told of the replay where it is, in the order of the run: at the beginning, at multiples
    /// of `every`, and where it ends.
    std::function<void(const Replayer&)> passed;
    /// What was reported so far belongs to a run that cannot be relied on; everything is reported
    /// again.
    std::function<void()> over_again;
    std::function<void(Position)> progress;  ///< called now and then; may be empty
    /// Asked now and then, within a REP too: whether to come no further for now.
    std::function<bool(Position)> pause;
  };
  /// `file` must outlive the object.
  VerifiedFront(const RecordingFile& file, Options options);

  /// Goes on to `to` unless it is there already, or as far as the run or a pause goes.
  void advance(Position to);
  void set_every(std::uint64_t every) { options_.every = every; }
  Position position() const { return session_->position(); }
  Moment moment() const { return session_->replayer().moment(); }
  /// It has come to the end of the run, or to where it diverges from its evidence.
  bool ended() const { return ended_; }
  const std::optional<Divergence>& divergence() const { return report_.divergence; }
  const ReplayReport& report() const { return report_; }
  /// What the comparison took over from the bus so far, in the order of positions.
  const std::vector<Adoption>& adoptions() const { return session_->adoptions(); }

 private:
  void begin(bool plain);
  bool run_to(Position to);
  void end();
  void diverge(Position at, std::string reason);

  const RecordingFile& file_;
  Options options_;
  std::optional<ReplaySession> session_;
  ReplayReport report_;
  bool ended_ = false;
  bool paused_ = false;  ///< within the last advance()
};

}  // namespace citcat
