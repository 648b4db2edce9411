#pragma once
// The run loop: runs the engine, and does between its runs what was requested during them.

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/segment_rights.h"

namespace citcat {

class CodePatcher;
class EarlyCpuQuirks;
class ExceptionDelivery;
class FastTier;
class Expectation;
class FlagCorrection;
class InstructionRunner;
class PortAccesses;
class TranslationWatch;

/// Each step of the loop is one run of the engine, which ends with CpuContext::after_stop, or a
/// page without a translation.
class RunLoop {
 public:
  /// What a step may call. All must outlive the loop.
  struct Units {
    CodePatcher& patcher;
    ExceptionDelivery& delivery;
    PortAccesses& ports;
    FlagCorrection& flag_correction;
    EarlyCpuQuirks& early;
    InstructionRunner& instructions;
    TranslationWatch& watch;
    FastTier& fast;
  };
  RunLoop(CpuContext& cpu, InFlight& flight, Expectation& expectation, SegmentRights& rights,
          const Units& units)
      : cpu_(cpu), flight_(flight), expectation_(expectation), rights_(rights), units_(units) {}

  /// Machine::run().
  void run(Position until);

 private:
  bool step();
  bool begin_here();
  bool resolve_translation_fault(bool was_patched);
  void finish_step();
  void do_as_asked();

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  SegmentRights& rights_;
  const Units units_;
};

}  // namespace citcat
