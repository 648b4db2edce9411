#pragma once
// The life of an instruction that is reported: prepared, executed by the engine or here, completed.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"

namespace citcat {

class CodeFetch;
class CodePatcher;
class DebugUnit;
class EarlyCpuQuirks;
class Emulator;
class EngineTranslations;
class ExceptionDelivery;
class FeatureGate;
class FlagCorrection;
class NearTransfer;
class OperandPreparation;
class Operands;
class Retirement;
class StringRunner;

/// meet() is called inside the engine's loop, all else between runs of it. An instruction is in
/// flight from prepare() on; before the next one is handled, it is completed (settle_before()).
class InstructionRunner {
 public:
  /// All must outlive the object.
  InstructionRunner(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug,
                    CodePatcher& patcher, Operands& operands, ExceptionDelivery& delivery,
                    FlagCorrection& flag_correction, Retirement& retirement, NearTransfer& near,
                    EarlyCpuQuirks& early, OperandPreparation& preparation, Emulator& emulator,
                    CodeFetch& code, EngineTranslations& translations, StringRunner& strings,
                    FeatureGate& features)
      : cpu_(cpu),
        flight_(flight),
        expectation_(expectation),
        debug_(debug),
        patcher_(patcher),
        operands_(operands),
        delivery_(delivery),
        flag_correction_(flag_correction),
        retirement_(retirement),
        near_(near),
        early_(early),
        preparation_(preparation),
        emulator_(emulator),
        code_(code),
        translations_(translations),
        strings_(strings),
        features_(features) {}

  /// The engine reports the instruction at `linear`.
  void meet(LinearAddr linear);
  /// The engine raised `vector` by itself.
  void note_fault(std::uint32_t vector) {
    native_vector_ = vector;
    cpu_.request(AfterStop::native_fault);
  }
  /// AfterStop::emulate, AfterStop::raise and AfterStop::map_page.
  void emulate();
  void raise_found();
  void map_page() { cpu_.memory.ensure_mapped(page_to_map_); }

  /// Completes what was in flight, now that `linear` is to be executed. False when the run has to
  /// stop first, or goes on with what is already prepared.
  bool settle_before(LinearAddr linear);
  /// True where the engine reports the instruction in flight once more: it has not completed. One
  /// that transfers control may lead to itself, but a call has pushed something then.
  bool comes_again() const;
  /// Between runs: completes what is in flight where the engine is past it, being at `linear`;
  /// `completed`: it is past it wherever it is.
  void settle_in_flight(LinearAddr linear, bool completed);
  /// AfterStop::native_fault.
  void handle_native_fault();
  /// The engine found no translation: makes the walk, or delivers the fault.
  void resolve_translation_fault();
  /// Leaves a repeated string whose count is used up without asking the engine, which would have to
  /// see the arranged bytes once more.
  void finish_repeat();

 private:
  void complete_in_flight(LinearAddr next_linear);
  void begin(LinearAddr linear);
  void prepare(LinearAddr linear);
  void note_code(LinearAddr linear, std::uint32_t size);
  void begin_anew();
  bool begins_beyond_segment(LinearAddr linear) const;
  bool repeat_count_is_zero() const;
  void ask_for_code_again();
  void look_within_repeat();
  void leave_repeat();

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  DebugUnit& debug_;
  CodePatcher& patcher_;
  Operands& operands_;
  ExceptionDelivery& delivery_;
  FlagCorrection& flag_correction_;
  Retirement& retirement_;
  NearTransfer& near_;
  EarlyCpuQuirks& early_;
  OperandPreparation& preparation_;
  Emulator& emulator_;
  CodeFetch& code_;
  EngineTranslations& translations_;
  StringRunner& strings_;
  FeatureGate& features_;

  CpuException exception_;
  FrameNumber page_to_map_ = 0;
  std::uint32_t native_vector_ = 0;
  /// Where run() is to end within a repeated string, and where it was to end before that.
  Position lowered_{~std::uint64_t{0}, 0}, behind_;
};

}  // namespace citcat
