#pragma once
// Taking checkpoints of a replay into its archive, and starting from them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/archive/checkpoint_series.h"
#include "replay/session/adoptions.h"
#include "replay/session/replayer.h"

namespace citcat {

/// Which program and engine make a replay; checkpoints of another are not used.
std::string replay_identity();

/// A part of the run, [from, to) in instructions.
struct ReplayRange {
  std::uint64_t from = 0;
  std::uint64_t to = ~std::uint64_t{0};
};

/// The checkpoints of an archive.
class Checkpoints {
 public:
  /// `file` must outlive the object.
  explicit Checkpoints(const RecordingFile& file);

  /// One of them to start at, or the beginning of the run of which they are.
  struct Start {
    std::size_t series = 0;
    std::optional<std::size_t> ordinal;  ///< nullopt: the beginning
    std::uint64_t instruction = 0;
    Position end;  ///< of the run: where the replay that took the checkpoint ended
  };
  /// The last checkpoint before `range`; nullopt when the replay must begin at the beginning.
  /// Strictly before, because what is delivered at a boundary has happened when a checkpoint is
  /// taken there. `strict`: none of a replay that took results over from the evidence.
  std::optional<Start> start_for(const ReplayRange& range, bool strict = false) const;
  /// The beginning of a run that was compared when its checkpoints were taken, if any; also where
  /// it was too short to take one. None of a recording whose interrupts a search has put in their
  /// places: another search may put them elsewhere.
  std::optional<Start> beginning(bool strict = false) const;
  /// The beginning and the checkpoints, in their order, of the series that has most of those a
  /// replay may start from; empty when there are none.
  std::vector<Start> longest_series(bool strict) const;
  /// What the replay from there must take over, or null when that run took nothing over.
  std::unique_ptr<Adoptions> adoptions_from(const Start& start) const;
  /// What restore() read last, for the next one to read less.
  struct Loaded {
    std::size_t series = 0;
    CheckpointSeries::Known known;
  };
  /// Takes the replayer there; at the beginning it must stand already. `loaded` may be null, and is
  /// empty at first.
  void restore(const Start& start, Replayer& replayer,
               std::optional<Loaded>* loaded = nullptr) const;

  /// The next checkpoint of the same series, or nullopt.
  std::optional<Start> after(const Start& start) const;
  /// True when the replayer, which is at that position, has the processor's state of then: going on
  /// from an earlier checkpoint gave the run that was checked when they were taken.
  bool agrees(const Start& at, Replayer& replayer) const;

  std::size_t count() const;
  std::uint64_t stored_bytes() const;
  const std::vector<CheckpointSeries>& series() const { return series_; }

 private:
  /// Replays may start from its checkpoints.
  bool usable(const CheckpointRun& run, bool strict) const;
  Start start_at(std::size_t series, std::size_t ordinal) const;
  Replayer::Checkpoint decode(const Start& start, std::span<const std::uint8_t> state) const;

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
  CheckpointTaker(const Recording& recording, const Options& options);

  /// Where the next one is to be taken.
  std::uint64_t next() const { return next_; }
  /// Takes one of `replayer`, which has been run to next().
  void take(const Replayer& replayer);
  std::uint64_t spacing() const { return every_; }
  std::size_t count() const { return writer_.size(); }

  /// Adds what was taken to the archive of the recording. `end` and `adoptions` are the replay's,
  /// `recording` as RecordingAppender has it. Once.
  void append_to(const std::string& path, Position end, std::vector<Adoption> adoptions,
                 const std::optional<Hash128>& recording = std::nullopt);

 private:
  CheckpointSeriesWriter writer_;
  std::uint64_t every_;
  std::uint64_t max_bytes_;
  std::uint64_t next_;
};

}  // namespace citcat
