#pragma once
// Hands what the engine tells while it runs to the units of the machine.

#include <cstdint>
#include <optional>
#include <span>

#include "replay/engine/engine.h"

namespace citcat {

class BlockPlanner;
class BlockRunner;
class EngineTranslations;
class PortAccesses;

/// The one client of the machine's engine.
class EngineEvents final : public EngineClient {
 public:
  /// None need be constructed before the engine runs; all must outlive the object.
  EngineEvents(BlockRunner& blocks, BlockPlanner& planner, EngineTranslations& translations,
               PortAccesses& ports)
      : blocks_(blocks), planner_(planner), translations_(translations), ports_(ports) {}

  // Defined where blocks are met, so that no call lies between the engine and BlockRunner::meet().
  TranslatedBlock* on_translation(LinearAddr linear) override;
  bool reports(LinearAddr linear) override;
  std::span<const PhysAddr> hides(LinearAddr linear) override;
  void on_instruction(LinearAddr linear, std::uint32_t size) override;
  void on_block(LinearAddr linear, std::uint32_t size, TranslatedBlock& block) override;
  void on_exception(std::uint32_t vector, bool software) override;
  std::optional<Translation> on_translate(LinearAddr linear, EngineAccess access) override;
  std::uint32_t on_in(std::uint16_t port, std::uint32_t size) override;
  void on_out(std::uint16_t port, std::uint32_t size, std::uint32_t value) override;

 private:
  BlockRunner& blocks_;
  BlockPlanner& planner_;
  EngineTranslations& translations_;
  PortAccesses& ports_;
};

}  // namespace citcat
