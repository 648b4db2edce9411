#pragma once
// A place of a session, to which it can return.

#include <cstdint>
#include <optional>

#include "replay/run/replay_session.h"
#include "replay/session/replayer.h"
#include "replay/verify/verifier.h"

namespace citcat {

struct ReplaySession::Checkpoint {
  Replayer::Checkpoint replayer;
  std::optional<Verifier::Checkpoint> verifier;  ///< where evidence is compared
  std::uint64_t evidence = 0;                    ///< transactions read
  std::optional<CheckpointStart> passed;         ///< the last checkpoint that agreed
};

}  // namespace citcat
