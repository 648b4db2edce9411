#pragma once
// Checkpoints of a replay as an archive keeps them (docs/formats/archive.md, "Checkpoints"): a
// series in which each holds the page frames that changed since the one before, as differences. The
// rest of a checkpoint's contents belongs to the replayer and is opaque here.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/adoption.h"
#include "events/archive/recording_file.h"
#include "events/machine/memory_image.h"

namespace citcat {

/// Frames by number, each as it is at one moment.
using SavedPageMap = std::map<FrameNumber, std::shared_ptr<const MemoryImage::Page>>;

/// Facts about the replay that took checkpoints.
struct CheckpointRun {
  std::string engine;  ///< program and engine
  Position end;        ///< where it ended; the evidence of a REP may end within it
  /// What it took over from the evidence: a replay that goes on from a checkpoint has none.
  std::vector<Adoption> adoptions;
};

/// A checkpoint with memory: what the frames changed since the start hold.
struct StoredCheckpoint {
  std::uint64_t instruction = 0;  ///< instructions completed before it
  std::vector<std::uint8_t> state;
  SavedPageMap pages;
};

/// The data from which a stored frame differs.
enum class PageBase : std::uint8_t { none, initial, previous };

/// The entry of one checkpoint in the index of a series.
struct CheckpointEntry {
  struct ChangedPage {
    FrameNumber number = 0;
    PageBase base = PageBase::none;
  };
  std::uint64_t instruction = 0;   ///< instructions completed before it
  std::vector<ChangedPage> pages;  ///< by ascending number
  std::uint64_t chunk_hash = 0;    ///< low half of the stored chunk's hash
};

/// The index of a series.
struct CheckpointIndex {
  CheckpointRun run;
  std::vector<CheckpointEntry> entries;
};
/// Throws FormatError; what it allocates is bounded by the payload.
CheckpointIndex decode_checkpoint_index(ByteReader& in);
/// Decodes all of a checkpoint's payload, which has `pages` frames according to the index, and
/// returns the state. Throws FormatError.
std::vector<std::uint8_t> decode_checkpoint(ByteReader& in, std::size_t pages);

/// The initial memory frames are differences to; nullptr where nothing is known.
using InitialPages = std::function<const MemoryImage::Page*(FrameNumber number)>;
InitialPages initial_pages_of(const Recording& recording);

/// Collects checkpoints in memory, compressed, until it is known which are kept.
class CheckpointSeriesWriter {
 public:
  explicit CheckpointSeriesWriter(InitialPages initial);

  /// The next checkpoint. `pages` are all frames that may have changed since the one before; state
  /// is taken as it is.
  void add(std::uint64_t instruction, std::span<const std::uint8_t> state,
           const SavedPageMap& pages);
  /// Bytes the checkpoints will take in the archive, all but exactly.
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  std::size_t size() const { return entries_.size(); }
  /// Drops every second checkpoint, the first one among them.
  void thin_out();

  /// Adds the series to an archive. Once.
  void append_to(RecordingAppender& archive, const CheckpointRun& run);

 private:
  /// A frame as the last checkpoint has it.
  struct Known {
    std::shared_ptr<const MemoryImage::Page> page;
    unsigned depth = 0;  ///< differences a reader follows to get it
  };
  struct Entry {
    CheckpointEntry index;
    std::vector<std::uint8_t> payload;
  };

  InitialPages initial_;
  std::unordered_map<FrameNumber, Known> known_;
  std::vector<Entry> entries_;
  std::uint64_t stored_bytes_ = 0;
};

/// A series in an archive.
class CheckpointSeries {
 public:
  /// All series of the archive, in the order in which they were added. Checkpoints that need a
  /// chunk a repair could not save are left out. Throws FormatError for a damaged index.
  static std::vector<CheckpointSeries> read(const RecordingFile& file);

  const std::vector<CheckpointEntry>& entries() const { return entries_; }
  const CheckpointRun& run() const { return run_; }
  /// An earlier checkpoint of the series whose frames are at hand.
  struct Known {
    std::size_t ordinal = 0;
    SavedPageMap pages;
  };
  /// The checkpoint with this ordinal. `file` is the archive the series was read from. With
  /// `known`, which may be null, only what was stored after that checkpoint is read.
  StoredCheckpoint load(const RecordingFile& file, std::size_t ordinal,
                        const Known* known = nullptr) const;
  /// Decodes everything the series has, and throws FormatError when something is no checkpoint.
  void check(const RecordingFile& file) const;
  /// Its state alone, without memory.
  std::vector<std::uint8_t> load_state(const RecordingFile& file, std::size_t ordinal) const;
  /// Bytes of its chunks in the archive.
  std::uint64_t stored_bytes() const;

 private:
  std::vector<CheckpointEntry> entries_;
  std::vector<ChunkInfo> chunks_;  ///< of each entry
  CheckpointRun run_;
  std::uint64_t index_bytes_ = 0;
};

}  // namespace citcat
