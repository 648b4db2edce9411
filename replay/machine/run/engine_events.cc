#include "replay/machine/run/engine_events.h"

#include "replay/machine/run/engine_translations.h"
#include "replay/machine/run/instruction_runner.h"
#include "replay/machine/run/translation_watch.h"
#include "replay/machine/units/port_accesses.h"

namespace citcat {

void EngineEvents::on_translation(LinearAddr) { watch_.begins(); }

std::span<const PhysAddr> EngineEvents::hides(LinearAddr linear) { return watch_.hides(linear); }

void EngineEvents::on_instruction(LinearAddr linear, std::uint32_t) { instructions_.meet(linear); }

void EngineEvents::on_exception(std::uint32_t vector, bool) { instructions_.note_fault(vector); }

std::optional<Translation> EngineEvents::on_translate(LinearAddr linear, EngineAccess access) {
  return translations_.translate(linear, access);
}

std::uint32_t EngineEvents::on_in(std::uint16_t port, std::uint32_t size) {
  return ports_.read(port, size);
}

void EngineEvents::on_out(std::uint16_t port, std::uint32_t size, std::uint32_t value) {
  ports_.write(port, size, value);
}

}  // namespace citcat
