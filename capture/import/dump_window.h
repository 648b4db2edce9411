#pragma once
// The state dump that a driver writes into its reserved window (driver-kmod/uapi/citcat_dump.h),
// found in the stream of bus transactions: by the monitor's mark, or by its two magic words.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capture/import/dump_state.h"
#include "events/access_run.h"
#include "events/bus_transaction.h"
#include "events/machine/cpu_state.h"
#include "events/machine/memory_image.h"

namespace citcat {

/// A processor state as dumped.
struct DumpedState {
  CpuState state;                  ///< `unknown` names the registers of words that are missing
  PhysAddr base;                   ///< of the window
  std::uint32_t end = 0;           ///< bytes of the dump
  bool waits_for_startup = false;  ///< whether it waits for a SIPI; `state` is then halted
  std::vector<std::string> warnings;
};

/// Watches the writes of a capture for a state dump. Writes may come in any order and size, and
/// other traffic may be before and between them. Memory grows with the distinct bytes written
/// until the dump is found.
class DumpFinder {
 public:
  /// Takes the next transaction. Returns true when it is a write into a window. Goes on being
  /// useful when the dump is complete: for the driver's markers.
  bool take(const BusTransaction& transaction);

  /// Once take_state() returned a state: whether take() may have something to say of `t`.
  bool concerns(const BusTransaction& t) const {
    return t.op == BusOp::data_write &&
           (t.has(kStateWindow) || t.address.is_within32(watched_, kWatchedBytes));
  }

  /// Whether any of a run is near the window, whatever it does there.
  bool concerns(const AccessRun& run) const;

  /// The driver's start marker was written: the recording begins after that store.
  bool started() const { return started_; }
  /// The driver's stop marker was written after the dump.
  bool stopped() const { return stopped_; }

  /// All words of a dump have been written.
  bool complete() const { return complete_.has_value(); }
  /// Enough was written to say that there is a dump, though words may still be missing: the monitor
  /// marked it, or both magic words are where they belong.
  bool found() const;

  /// What was written beside the state shows a driver that ends its dump with the start marker.
  bool expects_marker() const;

  /// The state. Call it when found(); words never written become `unknown` and warnings. Nullopt
  /// when the begin word or the layout version is another one. From then on only writes into this
  /// window are recognised.
  std::optional<DumpedState> take_state();

 private:
  /// A place that may be a window.
  struct Candidate {
    PhysAddr base;
    bool marked = false;               ///< by the monitor
    std::optional<std::uint32_t> end;  ///< offset of the end word, once the layout is known
    std::set<std::uint32_t> missing;   ///< offsets of words not yet written, when `end` is known
  };

  std::optional<std::uint32_t> word(PhysAddr base, std::uint32_t offset) const;
  std::optional<std::uint32_t> end_by_counts(PhysAddr base, const DumpLayout& its) const;
  std::optional<std::uint32_t> end_by_magic(PhysAddr base, const DumpLayout& its) const;
  std::optional<DumpLayout> told_layout(PhysAddr base) const;
  DumpLayout layout(PhysAddr base) const;
  DumpForm form(PhysAddr base, const DumpLayout& its) const;
  std::optional<DumpCounts> counts_before(PhysAddr base, const DumpLayout& its,
                                          std::uint32_t end) const;
  void note_magic(const BusTransaction& t);
  void note_mark(const BusTransaction& t);
  bool update(Candidate& candidate, const BusTransaction& t);
  const Candidate* best() const;

  /// The page of the dump and the markers after it.
  static constexpr std::uint32_t kWatchedBytes = 2 * kPageSize;

  MemoryImage written_;
  PhysAddr watched_;  ///< where the window begins that take_state() settled on
  std::vector<Candidate> candidates_;
  std::optional<std::size_t> complete_;  ///< index into candidates_
  bool started_ = false, stopped_ = false;
};

}  // namespace citcat
