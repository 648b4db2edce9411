#pragma once
// Captures that keep each channel separately, as the samples at which it changes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/captures/samples.h"

namespace citcat {

/// The changes of one channel, one after the other.
class ChannelChanges {
 public:
  virtual ~ChannelChanges() = default;
  ChannelChanges() = default;
  ChannelChanges(const ChannelChanges&) = delete;
  ChannelChanges& operator=(const ChannelChanges&) = delete;

  /// The level before the first change.
  virtual bool initial() const = 0;
  /// The number of the sample that shows the next change; nullopt when there is none. Numbers never
  /// fall.
  virtual std::optional<std::uint64_t> next() = 0;
  /// An oddity of what has been read so far; "" where there is none.
  virtual std::string warning() const { return ""; }
};

/// All channels together. `info` names a channel for each of `channels`, in their order; its
/// unit_bytes is set here. Throws UsageError for no channels and for more than kMaxChannels.
std::unique_ptr<SampleSource> merge_channels(SampleInfo info,
                                             std::vector<std::unique_ptr<ChannelChanges>> channels);

}  // namespace citcat
