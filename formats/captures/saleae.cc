#include "formats/captures/saleae.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "formats/captures/sample_buffer.h"
#include "formats/io/byte_reader.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::string_view kMagic = "<SALEAE>";
constexpr double kClockWithoutRate = 1e9;
constexpr std::uint32_t kDigital = 0;

/// The changes of one channel, one after the other.
class ChannelStream {
 public:
  explicit ChannelStream(std::unique_ptr<InputStream> input) : input_(std::move(input)) {
    std::array<std::uint8_t, 16> head;
    input_->read_exact(head, "header");
    if (!is_saleae(head)) throw FormatError(name(), 0, "expected '<SALEAE>', found something else");
    ByteReader reader(std::span<const std::uint8_t>(head).subspan(8), name(), 8);
    version_ = reader.u32("version");
    if (version_ > 1)
      throw FormatError(name(), 8, "expected version 0 or 1, found " + std::to_string(version_));
    if (const std::uint32_t type = reader.u32("type"); type != kDigital)
      throw FormatError(name(), 12,
                        "expected digital data (type 0), found type " + std::to_string(type));
    chunks_ = version_ == 0 ? 1 : number("chunk count");
    if (chunks_ == 0) throw FormatError(name(), 16, "expected at least one chunk, found none");
    read_chunk();
  }

  const std::string& name() const { return input_->name(); }
  double begin() const { return begin_; }
  double rate() const { return rate_; }
  bool initial() const { return initial_; }
  bool gaps() const { return gaps_; }

  /// Time of the next change, in seconds; false when there is none.
  bool next(double& time) {
    while (left_ == 0) {
      if (chunks_ == 0) return false;
      const bool level = level_;
      gaps_ = true;
      read_chunk();
      if (initial_ != level) {
        // It changed while nothing was recorded: known at the beginning of the chunk.
        time = checked(begin_);
        return true;
      }
    }
    --left_;
    level_ = !level_;
    time = checked(real("transition time"));
    return true;
  }

 private:
  void read_chunk() {
    --chunks_;
    std::array<std::uint8_t, 4> state;
    input_->read_exact(state, "initial state");
    initial_ = level_ = state[0] != 0;
    if (version_ == 1) rate_ = real("sample rate");
    begin_ = real("begin time");
    real("end time");
    left_ = number("transition count");
  }

  double checked(double time) {
    if (!std::isfinite(time) || time < last_)
      throw FormatError(name(), input_->offset() - 8, "expected times that rise");
    last_ = time;
    return time;
  }
  std::uint64_t number(const char* field) {
    std::array<std::uint8_t, 8> bytes;
    input_->read_exact(bytes, field);
    return ByteReader(bytes, name()).u64(field);
  }
  double real(const char* field) { return std::bit_cast<double>(number(field)); }

  std::unique_ptr<InputStream> input_;
  std::uint32_t version_ = 0;
  std::uint64_t chunks_ = 0, left_ = 0;
  bool initial_ = false, level_ = false, gaps_ = false;
  double rate_ = 0, begin_ = 0, last_ = -1e300;
};

class SaleaeSource final : public SampleSource {
 public:
  explicit SaleaeSource(std::vector<SaleaeChannel> channels) {
    if (channels.empty() || channels.size() > kMaxChannels)
      throw UsageError("expected 1 to " + std::to_string(kMaxChannels) + " channel files");
    for (SaleaeChannel& channel : channels) {
      info_.channels.push_back(channel.name);
      streams_.push_back(std::make_unique<ChannelStream>(std::move(channel.input)));
    }
    info_.name = streams_[0]->name();
    info_.unit_bytes = (channels.size() + 7) / 8;
    info_.sample_rate_hz = streams_[0]->rate();
    buffer_ = SampleBuffer(info_.unit_bytes, true);
    sample_.resize(info_.unit_bytes);
    begin_ = streams_[0]->begin();
    for (const auto& stream : streams_) begin_ = std::min(begin_, stream->begin());
    if (!std::isfinite(begin_)) throw FormatError(info_.name, 16, "expected a finite begin time");
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      set_level(sample_, i, streams_[i]->initial());
      queue(i);
    }
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    buffer_.clear();
    if (!started_) buffer_.add(sample_, 0);
    started_ = true;
    while (!buffer_.full() && !changes_.empty()) {
      const std::uint64_t number = changes_.front().number;
      while (!changes_.empty() && changes_.front().number == number) {
        std::pop_heap(changes_.begin(), changes_.end());
        const std::size_t channel = changes_.back().channel;
        changes_.pop_back();
        const bool level = ((sample_[channel / 8] >> (channel % 8)) & 1) != 0;
        set_level(sample_, channel, !level);
        queue(channel);
      }
      if (number != 0) buffer_.add(sample_, number);
    }
    if (buffer_.empty()) return false;
    out = buffer_.take();
    return true;
  }

  std::vector<std::string> warnings() const override {
    for (const auto& stream : streams_)
      if (stream->gaps())
        return {"the export has several chunks: what happened between them is not known"};
    return {};
  }

 private:
  struct Change {
    std::uint64_t number = 0;
    std::size_t channel = 0;
    // The heap's front is the earliest change.
    bool operator<(const Change& other) const { return number > other.number; }
  };

  /// Puts the channel's next change in line.
  void queue(std::size_t channel) {
    double time = 0;
    if (!streams_[channel]->next(time)) return;
    const double rate = info_.sample_rate_hz > 0 ? info_.sample_rate_hz : kClockWithoutRate;
    const double number = std::round((time - begin_) * rate);
    if (!(number >= 0 && number < 9e18))
      throw FormatError(streams_[channel]->name(), 0, "expected times within the capture");
    changes_.push_back({static_cast<std::uint64_t>(number), channel});
    std::push_heap(changes_.begin(), changes_.end());
  }

  SampleInfo info_;
  std::vector<std::unique_ptr<ChannelStream>> streams_;
  std::vector<Change> changes_;  ///< a heap: the next change of each channel
  std::vector<std::uint8_t> sample_;
  SampleBuffer buffer_{1, true};
  double begin_ = 0;
  bool started_ = false;
};

}  // namespace

bool is_saleae(std::span<const std::uint8_t> prefix) {
  return prefix.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), prefix.begin());
}

std::unique_ptr<SampleSource> open_saleae(std::vector<SaleaeChannel> channels) {
  return std::make_unique<SaleaeSource>(std::move(channels));
}

}  // namespace citcat
