#pragma once
// The signals of a waveform that a replay adds to the pins: the instruction stream below them.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "capture/inspect/extra_signals.h"
#include "cli/kt_text.h"
#include "replay/trace/trace_reader.h"

namespace citcat {

/// Instruction, its address and position, process, interrupt in progress, and where the replay
/// diverges from its evidence. What no transaction belongs to is spread evenly between its
/// neighbours in time.
class ReplaySignals final : public ExtraSignals {
 public:
  /// Throws UsageError if the recording's evidence has no clocks.
  explicit ReplaySignals(const std::string& recording);

  std::vector<Signal> signals() const override;
  bool next(Change& out) override;
  /// Where the replay diverged from its evidence, once next() has given all; else empty.
  const std::string& divergence() const { return divergence_; }

 private:
  enum Number : std::size_t {
    kInstruction,
    kAddress,
    kPosition,
    kProcess,
    kInterrupt,
    kDivergence,
    kReason
  };
  /// What changes with one record.
  using Step = std::vector<Change>;

  void read_on();
  Step step_of(const TraceRecord& record);
  void begin_interrupt(std::string name);
  void diverge(const TraceDiverged& diverged);
  void flush_waiting(std::uint64_t until);
  void put(Step& step, std::uint64_t clock);

  TraceReader reader_;
  TraceText text_{TextForm::text, 0};
  std::vector<std::string> interrupts_;  ///< in progress, the innermost last
  bool returned_ = false;                ///< the innermost has ended with the last instruction
  std::deque<Step> waiting_;             ///< for a later one whose clock is known
  std::deque<Change> changes_;           ///< to be handed out
  std::uint64_t clock_ = 0;              ///< of the last one put there
  bool any_ = false, ended_ = false;
  std::string divergence_;
};

}  // namespace citcat
