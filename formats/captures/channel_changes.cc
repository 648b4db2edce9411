#include "formats/captures/channel_changes.h"

#include <algorithm>
#include <utility>

#include "formats/captures/sample_buffer.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

class MergedChannels final : public SampleSource {
 public:
  MergedChannels(SampleInfo info, std::vector<std::unique_ptr<ChannelChanges>> channels)
      : info_(std::move(info)), channels_(std::move(channels)) {
    if (channels_.empty() || channels_.size() > kMaxChannels)
      throw UsageError("expected 1 to " + std::to_string(kMaxChannels) + " channels");
    info_.unit_bytes = (channels_.size() + 7) / 8;
    buffer_ = SampleBuffer(info_.unit_bytes, true);
    sample_.resize(info_.unit_bytes);
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      set_level(sample_, i, channels_[i]->initial());
      queue(i);
    }
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    buffer_.clear();
    if (!started_) {
      started_ = true;
      if (changes_.empty() || changes_.front().number != 0) buffer_.add(sample_, 0);
    }
    while (!buffer_.full() && !changes_.empty()) {
      const std::uint64_t number = changes_.front().number;
      while (!changes_.empty() && changes_.front().number == number) change_first();
      buffer_.add(sample_, number);
    }
    if (buffer_.empty()) return false;
    out = buffer_.take();
    return true;
  }

  std::vector<std::string> warnings() const override {
    for (const auto& channel : channels_) {
      if (const std::string warning = channel->warning(); !warning.empty()) return {warning};
    }
    return {};
  }

 private:
  struct Change {
    std::uint64_t number = 0;
    std::size_t channel = 0;
    // The heap's front is the earliest change.
    bool operator<(const Change& other) const { return number > other.number; }
  };

  void change_first() {
    std::pop_heap(changes_.begin(), changes_.end());
    const std::size_t channel = changes_.back().channel;
    changes_.pop_back();
    const bool level = ((sample_[channel / 8] >> (channel % 8)) & 1) != 0;
    set_level(sample_, channel, !level);
    queue(channel);
  }

  /// Puts the channel's next change in line.
  void queue(std::size_t channel) {
    const std::optional<std::uint64_t> number = channels_[channel]->next();
    if (!number) return;
    changes_.push_back({*number, channel});
    std::push_heap(changes_.begin(), changes_.end());
  }

  SampleInfo info_;
  std::vector<std::unique_ptr<ChannelChanges>> channels_;
  std::vector<Change> changes_;  ///< a heap: the next change of each channel
  std::vector<std::uint8_t> sample_;
  SampleBuffer buffer_{1, true};
  bool started_ = false;
};

}  // namespace

std::unique_ptr<SampleSource> merge_channels(
    SampleInfo info, std::vector<std::unique_ptr<ChannelChanges>> channels) {
  return std::make_unique<MergedChannels>(std::move(info), std::move(channels));
}

}  // namespace citcat
