#include "silicon/step_replay.h"

namespace citcat::silicon {

void StepWorld::begin(std::uint64_t until) {
  until_ = until;
  delivered_.clear();
}

Interest StepWorld::interest() const {
  return path_ == ExecutionPath::blocks ? Interest{} : Interest::changes();
}

StepEnd replay_step(Machine& machine, StepWorld& world, unsigned instructions) {
  StepEnd end;
  const std::uint64_t until = machine.position().instruction + instructions;
  world.begin(until);
  try {
    machine.run({until, 0});
  } catch (const ReplayStopped& stopped) {
    end.why = "the replay stops: " + stopped.reason;
    return end;
  }
  end.cpu = machine.save();
  if (machine.shut_down()) {
    end.why = "the replay shuts down";
  } else if (world.delivered().empty()) {
    end.kind = StepEnd::Kind::retired;
  } else {
    end.kind = StepEnd::Kind::exception;
  }
  return end;
}

bool has_error_code(std::uint8_t vector) {
  return vector == 8 || (vector >= 10 && vector <= 14) || vector == 17;
}

}  // namespace citcat::silicon
