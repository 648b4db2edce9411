#pragma once
// A capture of ../shared/data/machine: imported, replayed, verified and held to its ground truth.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "acceptance/golden_check.h"
#include "capture/import/import.h"
#include "replay/session/replayer.h"
#include "replay/verify/cache_check.h"
#include "replay/verify/verifier.h"
#include "unit/capture/machine_data.h"

namespace citcat::test {

/// A capture in one bus form.
struct MachineCapture {
  std::string name;
  char form = 'A';
};
std::string capture_text(const MachineCapture& capture);
MachineData data_of(const MachineCapture& capture);

/// Whether all is to be run, not what is quick: CITCAT_ACCEPTANCE=full.
bool is_full_run();

/// What is there, tests of every run first: the small captures, and one form of a longer one that
/// has processes and interrupts. `fast` leaves the others out.
std::vector<MachineCapture> acceptance_captures(bool fast);

/// True where the program stores results that every implementation computes differently.
bool has_specific_results(const MachineCapture& capture);

/// Its first instructions are given one by one; of the others only hashes are.
bool has_golden_stream(const MachineCapture& capture);

ImportedRecording import_machine(const MachineCapture& capture, IgnoreCounts counts);
/// One of ../shared/data/machine64.
ImportedRecording import_machine64(const MachineCapture& capture, IgnoreCounts counts);
/// The first without any count, and as if its timer were on the processor's chip: nothing
/// acknowledges it, its handler's end-of-interrupt command is its marker.
ImportedRecording import_with_hidden_timer(const MachineCapture& capture);

/// One replay against evidence and ground truth.
class MachineRun {
 public:
  MachineRun(const MachineCapture& capture, const ImportedRecording& imported,
             const VerifierOptions& options);
  /// Replays to the end of the evidence and checks that nothing of it is left.
  void run();
  /// Goes on within the processor and its caches until the monitor stopped; false when that needs
  /// something the evidence does not have.
  bool run_to_end_of_window();

  const ReplayReport& report() const { return report_; }
  const VerifyTotals& totals() const { return verifier_.totals(); }
  GoldenCheck& golden() { return golden_; }
  Machine& machine() { return replayer_->machine(); }
  std::uint64_t window() const { return window_; }

 private:
  std::uint64_t window_ = 0;
  GoldenCheck golden_;
  Verifier verifier_;
  Listeners listeners_;
  std::unique_ptr<Replayer> replayer_;
  ReplayReport report_;
};

/// A replay beside a model of the cache that the capture declares.
CacheTotals cache_totals(const ImportedRecording& imported);
/// What the capture's own description says of this form.
std::uint64_t declared_count(const MachineCapture& capture, const std::string& name);
/// Instructions until the monitor stopped.
std::uint64_t declared_instructions(const MachineCapture& capture);

/// Differences of the machine's memory and registers from those at the end of the window, one line
/// each, the first few.
std::vector<std::string> final_memory_differences(const MachineCapture& capture,
                                                  const Machine& machine, const Memory& memory,
                                                  std::uint64_t& compared);
std::vector<std::string> final_register_differences(const MachineCapture& capture,
                                                    const CpuState& state, bool with_fpu);

}  // namespace citcat::test
