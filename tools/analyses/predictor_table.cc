#include "tools/analyses/predictor_table.h"

namespace citcat::tools {

constexpr std::array<PredictorTable::Step, 32> PredictorTable::steps() {
  std::array<Step, 32> steps{};
  for (std::uint8_t i = 0; i < steps.size(); ++i) {
    const std::uint8_t taken = i & 1;
    for (std::size_t c = 0; c < kCounters; ++c) {
      const std::uint8_t state = state_of(i >> 1, c);
      const std::uint8_t next = kPredictorCounters[c].next[state][taken];
      steps[i].next = static_cast<std::uint8_t>(steps[i].next | next << (2 * c));
      steps[i].correct[c] = (state >= kTaken) == (taken != 0) ? 1 : 0;
    }
  }
  return steps;
}

constexpr std::array<PredictorTable::Step, 32> PredictorTable::kSteps = steps();

PredictorTable::PredictorTable(std::size_t entries, bool known)
    : known_(known), mask_(entries - 1) {
  if (known) {
    states_.resize(entries, kStart | kStart << 2);
  } else {
    for (auto& table : functions_) table.resize(entries);
  }
}

void PredictorTable::step_unknown(std::size_t index, bool taken, bool counts) {
  for (std::size_t c = 0; c < kCounters; ++c) {
    Function& function = functions_[c][index];
    for (std::uint8_t s = 0; s < kStates; ++s) {
      std::uint8_t& state = function.state[s];
      if (counts && (state >= kTaken) == taken) ++function.correct[s];
      state = kPredictorCounters[c].next[state][taken ? 1 : 0];
    }
  }
}

void PredictorTable::follow(const PredictorTable& later) {
  for (std::size_t c = 0; c < kCounters; ++c) {
    for (std::size_t i = 0; i < entries(); ++i) {
      const Function& other = later.functions_[c][i];
      if (known_) {
        const std::uint8_t between = state_of(states_[i], c);
        correct_[c] += other.correct[between];
        states_[i] = static_cast<std::uint8_t>((states_[i] & ~(3 << (2 * c))) | other.state[between]
                                                                                    << (2 * c));
        continue;
      }
      Function& mine = functions_[c][i];
      for (std::uint8_t s = 0; s < kStates; ++s) {
        const std::uint8_t between = mine.state[s];
        mine.correct[s] += other.correct[between];
        mine.state[s] = other.state[between];
      }
    }
  }
}

void PredictorTable::save(ByteWriter& out) const {
  out.u8(known_ ? 1 : 0);
  for (const std::uint8_t states : states_) out.u8(states);
  if (known_) {
    for (const std::uint64_t n : correct_) out.varint(n);
  }
  for (const auto& table : functions_) {
    for (const Function& f : table) {
      for (std::uint8_t s = 0; s < kStates; ++s) {
        out.u8(f.state[s]);
        out.varint(f.correct[s]);
      }
    }
  }
}

void PredictorTable::load(ByteReader& in) {
  if ((in.u8("whether states are known") != 0) != known_)
    in.fail("expected the other kind of table");
  for (std::uint8_t& states : states_) {
    states = in.u8("states");
    if (states >= kStates * kStates) in.fail("expected two states from 0 to 3");
  }
  if (known_) {
    for (std::uint64_t& n : correct_) n = in.varint("correct predictions");
  }
  for (auto& table : functions_) {
    for (Function& f : table) {
      for (std::uint8_t s = 0; s < kStates; ++s) {
        f.state[s] = in.u8("state");
        if (f.state[s] >= kStates) in.fail("expected a state from 0 to 3");
        f.correct[s] = in.varint("correct predictions");
      }
    }
  }
}

}  // namespace citcat::tools
