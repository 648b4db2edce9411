#pragma once
// Informs the engine of the places of pages.

#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"

namespace citcat {

/// Nothing that would hide an effect of a later access: rights as they are used, and no page whose
/// walk is still to be made. nullopt stops the engine before the access.
class EngineTranslations {
 public:
  /// All must outlive the object.
  EngineTranslations(CpuContext& cpu, InFlight& flight) : cpu_(cpu), flight_(flight) {}

  /// EngineClient::on_translate().
  std::optional<Translation> translate(LinearAddr linear, EngineAccess access);
  /// The page is one of those that the instruction in flight may look at with supervisor rights:
  /// its other accesses are the program's, like the upper half of what POP of a segment register
  /// takes off the stack.
  bool lies_in_system_tables(LinearAddr page) const;
  /// To be called before the engine executes code from the frame.
  void note_code(FrameNumber frame);

 private:
  void share_entry(Translation& known, LinearAddr page, EngineAccess kind);
  std::optional<Translation> translate_for_engine(LinearAddr linear, EngineAccess kind);
  bool touches_system_tables() const;

  CpuContext& cpu_;
  InFlight& flight_;
};

}  // namespace citcat
