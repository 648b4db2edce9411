#pragma once
// System management mode (Intel SDM vol. 3, chapter 34): an SMI saves the processor's state in
// memory and starts a handler, which RSM ends. The emulator logs both, and makes the accesses
// without reporting them.

#include <array>
#include <cstdint>

#include "monitor/processor/observation.h"
#include "monitor/units/execution.h"
#include "monitor/units/units.h"

namespace citcat::monitor {

class SystemManagement {
 public:
  SystemManagement(Observation& seen, Units& units, Execution& execution)
      : seen_(seen), cpu_(seen.cpu), units_(units), execution_(execution) {}

  /// An SMI has come, and the first instruction of its handler is about to start. `before`: what it
  /// has saved.
  void enter(const LoggedState& before);
  /// The RSM in flight has loaded `after`.
  void leave(const LoggedState& after);

 private:
  static constexpr std::uint32_t kSavedBytes = 512;
  static constexpr unsigned kSavedWords = kSavedBytes / 4;
  /// The saved state as a processor has it, the dword at the highest address first.
  using Words = std::array<std::uint32_t, kSavedWords>;

  std::uint32_t saved_at() const { return smbase_ + 0xfe00; }
  bool find_saved();
  unsigned end_before(const LoggedState& before);
  bool correct_ip(std::uint64_t ip);
  void stop_caching();
  Words saved() const;
  void show_saves();
  void show_loads();

  Observation& seen_;
  ObservedProcessor& cpu_;
  Units& units_;
  Execution& execution_;
  std::uint32_t smbase_ = 0;  ///< of the last SMI
};

}  // namespace citcat::monitor
