#include "replay/verify/rewindable_replay.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

RewindableReplay::RewindableReplay(const Recording& recording, const Schedule& schedule,
                                   const EvidenceSource& evidence, Options options)
    : waived_(options.verifying.policy.waived) {
  CITCAT_ASSERT(!options.verifying.final_memory);
  auto rewindable = std::make_unique<RewindableEvidence>(evidence);
  evidence_ = rewindable.get();
  auto hinted = std::make_unique<HintedEvidence>(std::move(rewindable), std::vector<Hint>{});
  hinted_ = hinted.get();
  options.verifying.schedule = &schedule;
  verifier_ = std::make_unique<Verifier>(recording, std::move(hinted), options.verifying);
  Listeners listeners(verifier_.get());
  for (Observer* const observer : options.observers) listeners.add(*observer);
  options.replay.evidence = evidence;
  replayer_ = std::make_unique<Replayer>(recording, schedule, listeners, std::move(options.replay));
}

struct RewindableReplay::Place::State {
  Replayer::Checkpoint replayer;
  Verifier::Checkpoint verifier;
  std::uint64_t evidence = 0;  ///< transactions read
  std::uint64_t next_transaction = 0;
};

const Replayer::Checkpoint& RewindableReplay::Place::replayer() const { return state_->replayer; }
std::uint64_t RewindableReplay::Place::next_transaction() const { return state_->next_transaction; }

RewindableReplay::Place RewindableReplay::here() const {
  return Place(std::make_shared<const Place::State>(
      Place::State{replayer_->checkpoint(), verifier_->checkpoint(), evidence_->position(),
                   evidence_->next_transaction()}));
}

void RewindableReplay::go_back(const Place& place, const std::vector<Hint>& hints) {
  evidence_->seek(place.state_->evidence);
  hinted_->set_hints(hints);
  restore_machine(place.state_->replayer, hints);
  verifier_->restore(place.state_->verifier);
  verifier_->waive(reviewed_transactions(hints, waived_));
  for (const Hint& hint : hints) {
    if (hint.kind != Hint::Kind::memory) continue;
    machine().correct(hint.address, hint.data);
    verifier_->correct_memory(hint.address, hint.data);
  }
}

void RewindableReplay::restore_machine(const Replayer::Checkpoint& place,
                                       const std::vector<Hint>& hints) {
  const bool as_it_was = std::none_of(hints.begin(), hints.end(), [](const Hint& hint) {
    return hint.kind == Hint::Kind::register_value;
  });
  if (as_it_was) return replayer_->restore(place);
  Replayer::Checkpoint changed = place;
  for (const Hint& hint : hints) {
    if (hint.kind == Hint::Kind::register_value) {
      changed.machine.set_register(hint.name, hint.value);
    }
  }
  replayer_->restore(changed);
}

}  // namespace citcat
