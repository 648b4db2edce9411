#pragma once
// The state that a recording begins with: the driver's dump, or the emulator's own view.

#include <cstdint>
#include <span>

#include "monitor/processor/observation.h"
#include "monitor/units/units.h"

namespace citcat::monitor {

class FirstState {
 public:
  FirstState(Observation& seen, Units& units) : seen_(seen), units_(units) {}

  /// What the driver has stored in its window.
  void send_dump(std::uint32_t window);
  /// `ip`: the emulator keeps its own up to date at some places only.
  void send(const LoggedState& state, std::uint64_t ip);

 private:
  void send_block(std::span<const std::uint32_t> words, std::uint32_t base);

  Observation& seen_;
  Units& units_;
};

}  // namespace citcat::monitor
