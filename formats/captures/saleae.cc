#include "formats/captures/saleae.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "formats/captures/channel_changes.h"
#include "formats/io/byte_reader.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::string_view kMagic = "<SALEAE>";
constexpr double kClockWithoutRate = 1e9;
constexpr std::uint32_t kDigital = 0;

/// The file of one channel.
class ExportedChannel final : public ChannelChanges {
 public:
  explicit ExportedChannel(std::unique_ptr<InputStream> input) : input_(std::move(input)) {
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
  /// Sample 0 of the capture is at `origin` seconds. To be called before next().
  void count_from(double origin, double rate) {
    origin_ = origin;
    clock_ = rate > 0 ? rate : kClockWithoutRate;
  }

  bool initial() const override { return initial_; }
  std::optional<std::uint64_t> next() override {
    while (left_ == 0) {
      if (chunks_ == 0) return std::nullopt;
      const bool level = level_;
      gaps_ = true;
      read_chunk();
      // It changed while nothing was recorded: known at the beginning of the chunk.
      if (initial_ != level) return number_at(begin_);
    }
    --left_;
    level_ = !level_;
    return number_at(real("transition time"));
  }
  std::string warning() const override {
    return gaps_ ? "the export has several chunks: what happened between them is not known" : "";
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

  std::uint64_t number_at(double time) {
    if (!std::isfinite(time) || time < last_)
      throw FormatError(name(), input_->offset() - 8, "expected times that rise");
    last_ = time;
    const double number = std::round((time - origin_) * clock_);
    if (!(number >= 0 && number < 9e18))
      throw FormatError(name(), input_->offset() - 8, "expected times within the capture");
    return static_cast<std::uint64_t>(number);
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
  double origin_ = 0, clock_ = kClockWithoutRate;
};

}  // namespace

bool is_saleae(std::span<const std::uint8_t> prefix) {
  return prefix.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), prefix.begin());
}

std::unique_ptr<SampleSource> open_saleae(std::vector<SaleaeChannel> channels) {
  SampleInfo info;
  std::vector<std::unique_ptr<ChannelChanges>> changes;
  std::vector<ExportedChannel*> exported;
  double begin = std::numeric_limits<double>::infinity();
  for (SaleaeChannel& channel : channels) {
    info.channels.push_back(std::move(channel.name));
    auto opened = std::make_unique<ExportedChannel>(std::move(channel.input));
    exported.push_back(opened.get());
    begin = std::min(begin, opened->begin());
    changes.push_back(std::move(opened));
  }
  if (!exported.empty()) {
    info.name = exported[0]->name();
    info.sample_rate_hz = exported[0]->rate();
    if (!std::isfinite(begin)) throw FormatError(info.name, 16, "expected a finite begin time");
  }
  for (ExportedChannel* channel : exported) channel->count_from(begin, info.sample_rate_hz);
  return merge_channels(std::move(info), std::move(changes));
}

}  // namespace citcat
