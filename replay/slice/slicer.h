#pragma once
// Finds where values of a run come from: goes back over it stretch by stretch, each replayed once
// from a checkpoint and looked through from its end. It needs memory for one stretch, for the
// values that it looks for, and for the steps that it has found.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "events/archive/recording_file.h"
#include "events/processors/foreign_reads.h"
#include "replay/run/replay_timeline.h"
#include "replay/slice/slice.h"

namespace citcat {

class SliceLog;
class SliceWalk;

class Slicer {
 public:
  /// `file` must outlive the object; interrupts must have their places. `foreign`: what the
  /// processor read that others had stored, or null; must outlive the object. It is asked once
  /// memory is looked for.
  Slicer(const RecordingFile& file, TimelineOptions options, ForeignReads* foreign = nullptr);
  ~Slicer();

  /// Where the value comes from that is there at a moment of the run. Throws UsageError where the
  /// run does not reach it, or memory is asked for that is not mapped there.
  Slice slice(const SliceQuery& query);
  ReplayTimeline& timeline() { return *timeline_; }

 private:
  void begin(const SliceQuery& query, SliceWalk& walk);
  void want_mmx(const SliceQuery& query, SliceWalk& walk) const;
  void want_memory(const SliceQuery::Bytes& bytes, SliceWalk& walk) const;
  bool go_back(Position from, Position to, SliceWalk& walk);
  std::optional<Position> last_store(Position to, const SliceWalk& walk);
  Position last_store(Position to, const MemoryWatch& watch);
  void take_beginning(SliceWalk& walk, Slice& slice) const;
  void take_memory_at_beginning(SliceWalk& walk, Slice& slice) const;
  void take_registers_at_beginning(const SliceWalk& walk, Slice& slice) const;
  static void take_open(const SliceWalk& walk, Slice& slice);
  void name_clocks(Slice& slice) const;
  static void connect(const SliceQuery& query, Slice& slice);

  /// What a search for stores found: the same is found from any place after it.
  struct Stored {
    std::uint32_t size = 0;
    Position behind;  ///< the store; the beginning of the run where there is none
  };

  const RecordingFile& file_;
  ForeignReads* foreign_;
  std::map<PhysAddr, Stored> stored_;
  std::unique_ptr<SliceLog> log_;
  std::unique_ptr<ReplayTimeline> timeline_;
};

}  // namespace citcat
