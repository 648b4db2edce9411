#pragma once
// A table of counters that predict conditional branches, and how often they were right.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat::tools {

/// A counter of a table: where it goes from each of four states when a branch is not taken, and
/// when it is. States 2 and 3 predict taken.
struct PredictorCounter {
  const char* key;
  const char* title;
  std::uint8_t next[4][2];
};

/// Smith's saturating counter of two bits (ISCA 1981), and that of IDtrace's simulator, which goes
/// from "not taken" back to "weakly taken" at once: worked out from known results, not read in the
/// report (docs/tools/bpred.md).
inline constexpr std::array<PredictorCounter, 2> kPredictorCounters = {{
    {"idtrace", "IDtrace's counter", {{0, 2}, {0, 2}, {0, 3}, {2, 3}}},
    {"two_bit", "saturating counter of two bits", {{0, 1}, {0, 2}, {1, 3}, {2, 3}}},
}};

/// Each entry has one counter of each kind. A table of a part of a run does not know in which state
/// it found an entry: what comes of each state is kept, and put together when what came before is
/// known.
class PredictorTable {
 public:
  /// `known`: all entries are as at the beginning of a run.
  PredictorTable(std::size_t entries, bool known);

  std::size_t entries() const { return mask_ + 1; }
  /// A conditional branch went on. `next`: of the instruction after it. `counts`: whether it was
  /// predicted right.
  void step(LinearAddr next, bool taken, bool counts) {
    // By the address of its last byte, as in IDtrace's branch traces.
    const std::size_t index = (next.low32() - 1) & mask_;
    if (!known_) return step_unknown(index, taken, counts);
    const Step& step = kSteps[2u * states_[index] + (taken ? 1u : 0u)];
    states_[index] = step.next;
    if (!counts) return;
    correct_[0] += step.correct[0];
    correct_[1] += step.correct[1];
  }
  /// Predicted right by that counter, of a table that knows its states.
  std::uint64_t correct(std::size_t counter) const { return correct_[counter]; }
  /// `later`, of the same size and with an unknown beginning, saw the next part of the run.
  void follow(const PredictorTable& later);
  void save(ByteWriter& out) const;
  /// Throws FormatError for what save() never writes.
  void load(ByteReader& in);

 private:
  static constexpr std::size_t kCounters = kPredictorCounters.size();
  static constexpr std::uint8_t kStates = 4, kStart = 2, kTaken = 2;

  /// What becomes of an entry: its counters' states, two bits each.
  struct Step {
    std::uint8_t next = 0;
    std::array<std::uint8_t, kCounters> correct{};
  };
  static constexpr std::array<Step, 32> steps();
  static const std::array<Step, 32> kSteps;  ///< by states and outcome

  /// A counter in a state that is not known: what comes of each.
  struct Function {
    std::array<std::uint8_t, kStates> state = {0, 1, 2, 3};
    std::array<std::uint64_t, kStates> correct{};
  };
  void step_unknown(std::size_t index, bool taken, bool counts);
  static constexpr std::uint8_t state_of(std::uint8_t states, std::size_t counter) {
    return states >> (2 * counter) & 3;
  }

  bool known_;
  std::size_t mask_;
  std::vector<std::uint8_t> states_;                        ///< of entries that are known
  std::array<std::uint64_t, kCounters> correct_{};          ///< by these
  std::array<std::vector<Function>, kCounters> functions_;  ///< of others
};

}  // namespace citcat::tools
