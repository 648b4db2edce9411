#pragma once
// Passes what the engine reports while it runs to the units of the machine.

#include <cstdint>
#include <optional>
#include <span>

#include "replay/engine/engine.h"

namespace citcat {

class EngineTranslations;
class InstructionRunner;
class PortAccesses;
class TranslationWatch;

/// The one client of the machine's engine.
class EngineEvents final : public EngineClient {
 public:
  /// None need be constructed before the engine runs; all must outlive the object.
  EngineEvents(InstructionRunner& instructions, TranslationWatch& watch,
               EngineTranslations& translations, PortAccesses& ports)
      : instructions_(instructions), watch_(watch), translations_(translations), ports_(ports) {}

  void on_translation(LinearAddr linear) override;
  std::span<const PhysAddr> hides(LinearAddr linear) override;
  void on_instruction(LinearAddr linear, std::uint32_t size) override;
  void on_exception(std::uint32_t vector, bool software) override;
  std::optional<Translation> on_translate(LinearAddr linear, EngineAccess access) override;
  std::uint32_t on_in(std::uint16_t port, std::uint32_t size) override;
  void on_out(std::uint16_t port, std::uint32_t size, std::uint32_t value) override;

 private:
  InstructionRunner& instructions_;
  TranslationWatch& watch_;
  EngineTranslations& translations_;
  PortAccesses& ports_;
};

}  // namespace citcat
