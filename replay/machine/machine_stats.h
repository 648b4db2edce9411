#pragma once
// Counts of a machine's work since it was made, for people who want to know where a replay spends
// its time.

#include <cstdint>

namespace citcat {

/// Counters; none decides anything, and no checkpoint holds them. Counted where a unit does work
/// that is slow beside an increment: what runs in blocks is what is left of all instructions.
struct MachineStats {
  std::uint64_t alone = 0;              ///< instructions completed one by one
  std::uint64_t emulated = 0;           ///< begun by a unit of the machine in place of the engine
  std::uint64_t string_iterations = 0;  ///< of REP, made many at a time
  std::uint64_t rolled_back = 0;        ///< blocks undone, because the comparison did not agree
  std::uint64_t engine_runs = 0;        ///< times that the engine was entered

  std::uint64_t translations = 0;    ///< blocks that the engine translated
  std::uint64_t blocks = 0;          ///< of the fast tier, made
  std::uint64_t blocks_dropped = 0;  ///< of these, because their code was stored to
  std::uint64_t code_forgotten = 0;  ///< times that all translated code was dropped
  std::uint64_t decoded = 0;         ///< instructions decoded, because no cache knew them

  std::uint64_t page_walks = 0;   ///< of the processor, to fill a TLB entry
  std::uint64_t quiet_walks = 0;  ///< those among them for blocks, not reported at once
  std::uint64_t tlb_flushes = 0;  ///< whole or but for global pages
};

}  // namespace citcat
