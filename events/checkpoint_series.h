#pragma once
// Checkpoints of a replay as an archive keeps them (docs/formats/archive.md, "Checkpoints"): a
// series, of which each holds the page frames that changed since the one before, as differences to
// what they were. What a checkpoint says beside memory is the replayer's and opaque here.

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

#include "events/memory_image.h"
#include "events/recording_file.h"

namespace citcat {

/// Frames by number, each as it is at one moment.
using PageMap = std::map<std::uint32_t, std::shared_ptr<const MemoryImage::Page>>;

/// Where a checkpoint stands.
struct CheckpointPlace {
  std::uint64_t instruction = 0;  ///< instructions completed before it
  /// Results taken over from the evidence before it: a replay that goes on from here without
  /// evidence is the same only as far as no more are needed.
  std::uint64_t adopted = 0;
};

/// A checkpoint with memory: what the frames changed since the start hold.
struct StoredCheckpoint {
  CheckpointPlace place;
  std::vector<std::uint8_t> state;
  PageMap pages;
};

/// What the difference of a stored frame is to.
enum class PageBase : std::uint8_t { none, initial, previous };

/// What the archive's index of a series says of one checkpoint.
struct CheckpointEntry {
  struct ChangedPage {
    std::uint32_t number = 0;
    PageBase base = PageBase::none;
  };
  CheckpointPlace place;
  std::vector<ChangedPage> pages;  ///< by ascending number
  std::uint64_t chunk_hash = 0;    ///< low half of the stored chunk's hash
};

/// The initial memory frames are differences to; nullptr where nothing is known.
using InitialPages = std::function<const MemoryImage::Page*(std::uint32_t number)>;
InitialPages initial_pages_of(const Recording& recording);

/// Collects checkpoints in memory, compressed, until it is known which are kept.
class CheckpointSeriesWriter {
 public:
  explicit CheckpointSeriesWriter(InitialPages initial);

  /// The next checkpoint. `pages` are all frames that may have changed since the one before; state
  /// is taken as it is.
  void add(const CheckpointPlace& place, std::span<const std::uint8_t> state, const PageMap& pages);
  /// Bytes the checkpoints will take in the archive, all but exactly.
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  std::size_t size() const { return entries_.size(); }
  /// Drops every second checkpoint, the first one among them.
  void thin_out();

  /// Adds the series to an archive. `end` is where the run that was replayed ended. Once.
  void append_to(RecordingAppender& archive, const std::string& engine, const CheckpointPlace& end);

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
  std::unordered_map<std::uint32_t, Known> known_;
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
  const std::string& engine() const { return engine_; }
  /// Where the replay that took the checkpoints ended.
  const CheckpointPlace& end() const { return end_; }
  /// The checkpoint with this ordinal. `file` is the archive the series was read from.
  StoredCheckpoint load(const RecordingFile& file, std::size_t ordinal) const;
  /// Its state alone, without memory.
  std::vector<std::uint8_t> load_state(const RecordingFile& file, std::size_t ordinal) const;
  /// Bytes of its chunks in the archive.
  std::uint64_t stored_bytes() const;

 private:
  std::vector<CheckpointEntry> entries_;
  std::vector<ChunkInfo> chunks_;  ///< of each entry
  std::string engine_;
  CheckpointPlace end_;
  std::uint64_t index_bytes_ = 0;
};

}  // namespace citcat
