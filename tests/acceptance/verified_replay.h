#pragma once

#include <gtest/gtest.h>

#include "capture/import/import.h"
#include "replay/session/replayer.h"
#include "replay/verify/verifier.h"

namespace citcat::test {

/// A replay compared with all evidence, which must agree to its end.
class VerifiedReplay {
 public:
  /// `imported` and `also`, which is told everything too and may be null, must outlive the object.
  explicit VerifiedReplay(const ImportedRecording& imported, Observer* also = nullptr)
      : verifier_(imported.recording, imported.read_evidence(), {}) {
    Listeners listeners;
    listeners.add(verifier_);
    if (also != nullptr) listeners.add(*also);
    Replayer replayer(imported.recording, listeners, {});
    report_ = replayer.run();
    EXPECT_EQ(report_.end, ReplayReport::End::complete)
        << (report_.divergence ? report_.divergence->reason : "");
    EXPECT_NO_THROW(verifier_.finish(replayer.machine().position()));
    final_ = verifier_.compare_final(nullptr);
  }

  const ReplayReport& report() const { return report_; }
  const VerifyTotals& totals() const { return verifier_.totals(); }
  const FinalMemory& final_memory() const { return final_; }

 private:
  Verifier verifier_;
  ReplayReport report_;
  FinalMemory final_;
};

}  // namespace citcat::test
