#pragma once
// What the engine is told of where pages lie.

#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/running_block.h"

namespace citcat {

class CodeFrames;

/// Nothing that would hide an effect of a later access: rights as they are used, and no page whose
/// walk is still to be made. nullopt stops the engine before the access.
class EngineTranslations {
 public:
  /// All must outlive the object.
  EngineTranslations(CpuContext& cpu, InFlight& flight, Expectation& expectation,
                     RunningBlock& running, CodeFrames& code_frames)
      : cpu_(cpu),
        flight_(flight),
        expectation_(expectation),
        running_(running),
        code_frames_(code_frames) {}

  /// EngineClient::on_translate().
  std::optional<Translation> translate(LinearAddr linear, EngineAccess access);
  /// The page is one of those that the instruction in flight may look at with supervisor rights:
  /// its other accesses are the program's, like the upper half of what POP of a segment register
  /// takes off the stack.
  bool lies_in_system_tables(LinearAddr page) const;

 private:
  void share_entry(Translation& known, LinearAddr page, EngineAccess kind);
  std::optional<Translation> translate_for_engine(LinearAddr linear, EngineAccess kind);
  std::optional<Translation> translate_for_block(LinearAddr page, Access access);
  Translation allow_engine(Translation known, Access access);
  bool drops_code(const BlockTemplate& block, LinearAddr page) const;
  bool touches_system_tables() const;

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  RunningBlock& running_;
  CodeFrames& code_frames_;
};

}  // namespace citcat
