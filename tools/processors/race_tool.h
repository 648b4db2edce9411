#pragma once
// Conflicting accesses of two processors that nothing orders: neither a locked instruction, nor a
// place that locked instructions use, nor an interrupt that one sent to the other. By vector clocks
// (Mattern 1989), of which each dword keeps what is needed of its last accesses.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/names/symbols.h"
#include "replay/processors/machine_session.h"
#include "tools/host/report.h"
#include "tools/processors/call_contexts.h"

namespace citcat::tools {

class RaceTool final : public MachineListener {
 public:
  /// `symbols`, which must outlive this, name code. `knows_order`: conflicting accesses come in the
  /// order in which they were made; otherwise what is found need be no race.
  RaceTool(std::size_t processors, std::size_t top, const Symbols& symbols, bool knows_order);

  void access(const ProcessorAccess& access) override;
  void called(std::uint8_t processor, LinearAddr from) override;
  void returned(std::uint8_t processor) override;
  void interrupted(std::uint8_t processor, std::uint8_t vector) override;
  void message(std::uint8_t from, std::uint8_t vector) override;
  void report(Report& out) const;

 private:
  static constexpr std::uint8_t kNobody = 255;
  using Clock = std::vector<std::uint64_t>;

  /// An access that later ones may race with.
  struct Place {
    std::uint8_t processor = kNobody;
    std::uint64_t time = 0;  ///< of its processor's clock
    LinearAddr instruction;
    Position position;
    CallContexts::Context calls = 0;  ///< that its processor was in
  };
  struct Dword {
    Place write;
    std::vector<Place> reads;  ///< the last of each processor since the write
    Clock synchronized;        ///< of a place that locked instructions use; else empty
  };
  struct Race {
    std::uint64_t times = 0;
    PhysAddr address;
    bool both_write = false;
    Place first, second;  ///< of the first time
  };

  void synchronize(Dword& dword, const ProcessorAccess& access);
  void compare(const Place& before, const ProcessorAccess& access, bool before_writes);
  Place place_of(const ProcessorAccess& access) const;
  std::string calls_of(const Place& place) const;

  std::size_t processors_, top_;
  bool knows_order_;
  std::vector<Clock> clocks_;
  std::unordered_map<std::uint64_t, Dword> dwords_;
  std::map<std::pair<LinearAddr, LinearAddr>, Race> races_;  ///< by instructions, the lower first
  std::array<Clock, 256> sent_;  ///< with the last message of each vector
  CallContexts calls_;
  const Symbols& symbols_;
};

}  // namespace citcat::tools
