#pragma once
// Taking checkpoints of a replay into its archive, and starting from them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/archive/checkpoint_series.h"
#include "replay/session/checkpoint_start.h"

namespace citcat {

class Adoptions;
class Replayer;

/// Names the program and engine that replay; checkpoints made by another are not used.
std::string replay_identity();

/// The checkpoints of an archive.
class Checkpoints {
 public:
  /// `file` must outlive the object.
  explicit Checkpoints(const RecordingFile& file);

  using Start = CheckpointStart;
  /// The last checkpoint before `range`; nullopt when the replay must begin at the beginning.
  /// Strictly before, because a checkpoint at a boundary is taken after what is delivered there.
  /// `strict`: excludes checkpoints of a replay that adopted results from the bus.
  std::optional<Start> start_for(const ReplayRange& range, bool strict = false) const;
  /// The beginning of a run that was compared when its checkpoints were taken, if any; also where
  /// it was too short to take one. None of a recording whose interrupts a search has put in their
  /// places: another search may put them elsewhere.
  std::optional<Start> beginning(bool strict = false) const;
  /// The usable series with the most checkpoints: its beginning, then its checkpoints in order.
  /// Empty when no series can be used.
  std::vector<Start> longest_series(bool strict) const;
  /// The adoptions that a replay from there must make, or null when the run had none.
  std::unique_ptr<Adoptions> adoptions_from(const Start& start) const;
  /// What restore() read last, so that the next call reads less.
  struct Loaded {
    std::size_t series = 0;
    CheckpointSeries::Known known;
  };
  /// Puts the replayer there; if `start` is the beginning, it must be there already. `loaded` may
  /// be null; it is empty at first.
  void restore(const Start& start, Replayer& replayer,
               std::optional<Loaded>* loaded = nullptr) const;

  /// The next checkpoint of the same series, or nullopt.
  std::optional<Start> after(const Start& start) const;
  /// True when the replayer, which is at that position, has the processor state that the checkpoint
  /// stores: the replay from an earlier checkpoint is then the run that was verified.
  bool agrees(const Start& at, Replayer& replayer) const;

  std::size_t count() const;
  std::uint64_t stored_bytes() const;
  const std::vector<CheckpointSeries>& series() const { return series_; }

 private:
  /// Whether replays may start from the checkpoints of this run.
  bool usable(const CheckpointRun& run, bool strict) const;
  Start start_at(std::size_t series, std::size_t ordinal) const;

  const RecordingFile& file_;
  std::vector<CheckpointSeries> series_;
};

/// Takes checkpoints at multiples of a spacing, which doubles whenever they become too large.
class CheckpointTaker {
 public:
  struct Options {
    std::uint64_t every = std::uint64_t{1} << 20;      ///< instructions, not 0
    std::uint64_t max_bytes = std::uint64_t{1} << 26;  ///< of all together in the archive
  };
  /// `recording` must outlive the object. Throws UsageError for a spacing of 0.
  CheckpointTaker(const Recording& recording, const Options& options);

  /// Where the next one is to be taken.
  std::uint64_t next() const { return next_; }
  /// Takes a checkpoint of `replayer`, which has been run to next().
  void take(const Replayer& replayer);
  /// Drops all checkpoints taken so far, because the run starts over.
  void start_over();
  std::uint64_t spacing() const { return every_; }
  std::size_t count() const { return writer_.size(); }

  /// Appends the checkpoints to the archive of the recording. `end` and `adoptions` are those of
  /// the replay, `recording` is as RecordingAppender has it. To be called once.
  void append_to(const std::string& path, Position end, std::vector<Adoption> adoptions,
                 const std::optional<Hash128>& recording = std::nullopt);

 private:
  const Recording& recording_;
  const Options options_;
  CheckpointSeriesWriter writer_;
  std::uint64_t every_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace citcat
