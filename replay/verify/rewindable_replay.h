#pragma once
// A compared replay that can return to any place that it has passed and continue from there with
// another schedule. Searches and trials share it.
//
// A ReplaySession does more than these need: it goes through an archive once, makes adoptions, uses
// the checkpoints of the archive, and ends with a verdict.

#include <cstdint>
#include <memory>
#include <vector>

#include "events/hint.h"
#include "replay/session/replayer.h"
#include "replay/session/rewindable_evidence.h"
#include "replay/verify/verifier.h"

namespace citcat {

class RewindableReplay {
 public:
  struct Options {
    VerifierOptions verifying;  ///< without final memory, which is no part of a place
    ReplayOptions replay;
    std::vector<Observer*> observers;  ///< they keep their own state
  };
  /// `recording`, `schedule` and what the options point to must outlive the replay. `evidence`
  /// opens the recording's evidence from the start.
  RewindableReplay(const Recording& recording, const Schedule& schedule,
                   const EvidenceSource& evidence, Options options);
  RewindableReplay(const RewindableReplay&) = delete;
  RewindableReplay& operator=(const RewindableReplay&) = delete;

  ReplayReport run() { return replayer_->run(); }
  ReplayReport run_to(Position to) { return replayer_->run_to(to); }

  /// A place between two calls of run(), to return to. Copies share what it holds: the state of a
  /// machine and of a comparison.
  class Place {
   public:
    Position position() const { return replayer().machine.position; }
    const Replayer::Checkpoint& replayer() const;
    /// All transactions with smaller numbers have been read, no others.
    std::uint64_t next_transaction() const;

   private:
    friend class RewindableReplay;
    struct State;
    explicit Place(std::shared_ptr<const State> state) : state_(std::move(state)) {}
    std::shared_ptr<const State> state_;
  };
  Place here() const;
  /// From there on everything is as `hints` have it: evidence, memory and registers. Events are the
  /// schedule's, which its owner has corrected by then.
  void go_back(const Place& place, const std::vector<Hint>& hints = {});
  /// From now on going back to here or later is cheap, until release().
  void hold() { evidence_->hold(); }
  void release() { evidence_->release(); }

  /// Whether what the replay does is compared; at first it is.
  void compare(bool compares) { machine().set_judged(compares); }

  Machine& machine() { return replayer_->machine(); }
  const Machine& machine() const { return replayer_->machine(); }
  Replayer& replayer() { return *replayer_; }
  const Replayer& replayer() const { return *replayer_; }
  Verifier& verifier() { return *verifier_; }
  const Verifier& verifier() const { return *verifier_; }
  /// Transactions of the evidence read so far.
  std::uint64_t transactions_read() const { return evidence_->position(); }

 private:
  void restore_machine(const Replayer::Checkpoint& place, const std::vector<Hint>& hints);

  std::vector<std::uint64_t> waived_;
  RewindableEvidence* evidence_ = nullptr;  ///< what hinted_ reads
  HintedEvidence* hinted_ = nullptr;        ///< the verifier's
  std::unique_ptr<Verifier> verifier_;
  std::unique_ptr<Replayer> replayer_;
};

}  // namespace citcat
