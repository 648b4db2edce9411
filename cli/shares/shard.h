#pragma once
// A trace made in shares by programs that know nothing of each other, as on a cluster: share K of N
// is a file with a description beside it, and `merge` checks that they make up one trace, and joins
// them.

#include <cstdint>
#include <optional>
#include <string>

#include "events/archive/recording_file.h"
#include "formats/io/hash.h"
#include "formats/kt/trace_sink.h"
#include "replay/session/checkpoints.h"

namespace citcat {

/// Which share: 1 <= number <= count.
struct Shard {
  std::uint32_t number = 1, count = 1;
};

/// "K/N", or "auto": from the array or task variables of Slurm or Grid Engine. Throws
/// UsageError for anything else, or when "auto" finds no such variable.
Shard parse_shard(const std::string& text);

/// Name of the share's file: "boot.kt.zst" becomes "boot.0003-of-0016.kt.zst". The number is
/// put before the first ".kt", else at the end.
std::string shard_path(const std::string& output, Shard shard);

/// The name of share `number` of the same trace, where that of `shard` has the name `path`.
std::string sibling_shard_path(const std::string& path, Shard shard, std::uint32_t number);

/// The share's instructions. Throws UsageError if the length of the run is not known.
ReplayRange shard_range(const RecordingFile& file, const ReplayRange& whole, Shard shard);

/// What is written beside a share, as "NAME.json".
struct ShardDescription {
  Shard shard;
  ReplayRange whole, range;
  std::string recording;    ///< content hash of the archive
  std::string options;      ///< what else shapes the trace
  std::uint64_t bytes = 0;  ///< of KT, uncompressed
  std::string xxh3;         ///< of these

  bool same_trace(const ShardDescription& other) const {
    return recording == other.recording && options == other.options &&
           shard.count == other.shard.count && whole.from == other.whole.from &&
           whole.to == other.whole.to;
  }
};
void write_description(const std::string& path, const ShardDescription& description);
/// Throws FormatError where the file is not a description, IoError when there is none.
ShardDescription read_description(const std::string& path);

/// Counts and hashes what passes through.
class HashingSink final : public TraceSink {
 public:
  explicit HashingSink(ByteSink& target) : target_(target), trace_(as_trace_sink(target)) {}
  void write(std::span<const std::uint8_t> bytes) override {
    hasher_.update(bytes);
    bytes_ += bytes.size();
    target_.write(bytes);
  }
  bool takes_wide() override { return trace_ == nullptr || trace_->takes_wide(); }
  bool keeps_notes() const override { return trace_ != nullptr && trace_->keeps_notes(); }
  void note(const KtNote& note) override {
    if (trace_ != nullptr) trace_->note(note);
  }
  void finish() override { target_.finish(); }
  std::uint64_t bytes() const { return bytes_; }
  std::string hash() const { return hasher_.value().hex(); }

 private:
  ByteSink& target_;
  TraceSink* trace_;  ///< the same, where it knows of records
  Hasher128 hasher_;
  std::uint64_t bytes_ = 0;
};

}  // namespace citcat
