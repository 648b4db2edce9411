#pragma once
// Conflicting accesses of two processors that nothing orders: neither a locked instruction, nor a
// place that locked instructions use, nor an interrupt that one sent to the other. Uses vector
// clocks (Mattern 1989); each byte keeps the parts that are needed for its last accesses.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/names/symbols.h"
#include "replay/processors/machine_session.h"
#include "tools/host/report.h"
#include "tools/processors/call_contexts.h"
#include "tools/processors/locked_places.h"

namespace citcat::tools {

class RaceTool final : public MachineListener {
 public:
  /// `symbols` name code, and `locked` are the places of locked instructions in all of the run;
  /// both must outlive this. `knows_order`: conflicting accesses come in the order in which they
  /// were made; otherwise what is found need be no race.
  RaceTool(std::size_t processors, std::size_t top, const Symbols& symbols,
           const LockedPlaces& locked, bool knows_order);

  void access(const ProcessorAccess& access) override;
  void called(std::uint8_t processor, LinearAddr from) override;
  void returned(std::uint8_t processor) override;
  void interrupted(std::uint8_t processor, std::uint16_t signal) override;
  void message(const ProcessorMessage& message) override;
  void report(Report& out) const;

 private:
  static constexpr std::uint8_t kNobody = 255;
  static constexpr std::uint32_t kWordBytes = 8;
  using Clock = std::vector<std::uint64_t>;

  /// An access that later ones may race with.
  struct Place {
    std::uint8_t processor = kNobody;
    std::uint64_t time = 0;  ///< of its processor's clock
    LinearAddr instruction;
    Position position;
    CallContexts::Context calls = 0;  ///< that its processor was in
  };
  /// Bytes of a word that were always accessed together.
  struct Cell {
    std::uint8_t begin = 0, end = 0;
    Place write;
    std::vector<Place> reads;  ///< the last of each processor since the write
  };
  using Word = std::vector<Cell>;  ///< ascending
  /// A message that one of several processors takes.
  struct ToOne {
    ApicReceivers::Set to;
    Clock sent;
  };
  struct Race {
    std::uint64_t times = 0;
    PhysAddr address;
    bool both_write = false;
    Place first, second;  ///< of the first time
  };

  void acquire(const ProcessorAccess& access, PhysAddr byte);
  void leave(const ProcessorAccess& access, PhysAddr byte);
  void access_plain(const ProcessorAccess& access, PhysAddr begin, std::uint32_t size);
  template <typename Take>
  void for_cells(Word& word, std::uint32_t begin, std::uint32_t end, Take take);
  void compare(const Place& before, const ProcessorAccess& access, bool before_writes);
  Place place_of(const ProcessorAccess& access) const;
  std::string calls_of(const Place& place) const;

  std::size_t processors_, top_;
  bool knows_order_;
  const LockedPlaces& locked_;
  std::vector<Clock> clocks_;
  std::unordered_map<std::uint64_t, Word> words_;
  std::unordered_map<std::uint64_t, Clock> synchronized_;  ///< by byte that locked instructions use
  std::map<std::pair<LinearAddr, LinearAddr>, Race> races_;  ///< by instructions, the lower first
  std::vector<std::pair<const Race*, Position>> found_;      ///< by the reported access
  /// Those of messages that have not been taken, by processor and signal.
  std::map<std::pair<std::size_t, std::uint16_t>, Clock> sent_;
  std::map<std::uint16_t, std::vector<ToOne>> to_one_;
  CallContexts calls_;
  const Symbols& symbols_;
};

}  // namespace citcat::tools
