#include "formats/captures/dsview.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "formats/captures/sample_buffer.h"
#include "formats/io/error.h"
#include "formats/io/key_file.h"
#include "formats/io/zip_reader.h"

namespace citcat {
namespace {

constexpr std::size_t kMaxHeader = 1 << 20;
// Samples of all channels that are turned from one bit a channel into samples at a time.
constexpr std::size_t kBytesAtATime = 1024;

/// One channel's bits, from block to block.
class BitPlane {
 public:
  BitPlane(const ZipReader& zip, int channel)
      : zip_(zip), prefix_("L-" + std::to_string(channel) + "/") {}

  bool exists() const { return zip_.find(prefix_ + "0") >= 0; }

  /// Fills `out` as far as the channel goes.
  std::size_t read(std::span<std::uint8_t> out) {
    std::size_t done = 0;
    while (done < out.size()) {
      if (!member_) {
        const int entry = zip_.find(prefix_ + std::to_string(block_));
        if (entry < 0) break;
        ++block_;
        member_.emplace(zip_, static_cast<std::size_t>(entry));
      }
      const std::size_t n = member_->read(out.subspan(done));
      done += n;
      if (n == 0) member_.reset();
    }
    return done;
  }

 private:
  const ZipReader& zip_;
  std::string prefix_;
  std::uint64_t block_ = 0;
  std::optional<ZipReader::Member> member_;
};

/// Version 1: one member of samples of 16 channels, each two bytes.
class DsviewWords final : public SampleSource {
 public:
  DsviewWords(std::unique_ptr<ZipReader> zip, const KeyFile::Group& header)
      : zip_(std::move(zip)), buffer_(kBytesAtATime * 8 * kUnit) {
    info_.name = zip_->name();
    info_.unit_bytes = kUnit;
    info_.sample_rate_hz = parse_sample_rate(KeyFile::value(header, "samplerate"));
    for (std::size_t channel = 0; channel < 8 * kUnit; ++channel)
      info_.channels.push_back(KeyFile::value(header, "probe" + std::to_string(channel)));
    const std::string named = KeyFile::value(header, "capturefile");
    const std::string member = named.empty() ? "data" : named;
    const int entry = zip_->find(member);
    if (entry < 0)
      throw FormatError(info_.name, 0,
                        "expected samples in '" + member + "', found no such member");
    member_.emplace(*zip_, static_cast<std::size_t>(entry));
    // The length of the member counts where the header does not say.
    if (!KeyFile::value(header, "total samples").empty())
      total_ = key_number(header, "total samples", ~0ul / 16, info_.name + "/header");
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    const std::uint64_t wanted = std::min<std::uint64_t>(buffer_.size() / kUnit, total_ - sample_);
    if (wanted == 0) return false;
    const std::size_t n = member_->read(std::span(buffer_).first(wanted * kUnit));
    if (n % kUnit != 0 || (n < wanted * kUnit && total_ != kUntold))
      throw FormatError(member_->name(), member_->offset(),
                        "expected " + std::to_string(total_) + " samples of 2 bytes, found " +
                            std::to_string(sample_ + n / kUnit));
    if (n == 0) return false;
    out.first = sample_;
    out.bytes = std::span<const std::uint8_t>(buffer_).first(n);
    out.numbers = {};
    sample_ += n / kUnit;
    return true;
  }

 private:
  static constexpr std::size_t kUnit = 2;
  static constexpr std::uint64_t kUntold = ~std::uint64_t{0};
  std::unique_ptr<ZipReader> zip_;
  SampleInfo info_;
  std::vector<std::uint8_t> buffer_;
  std::optional<ZipReader::Member> member_;
  std::uint64_t total_ = kUntold, sample_ = 0;
};

class DsviewSource final : public SampleSource {
 public:
  DsviewSource(std::unique_ptr<ZipReader> zip, const KeyFile::Group& header)
      : zip_(std::move(zip)) {
    info_.name = zip_->name();
    read_header(header);
    info_.unit_bytes = (planes_.size() + 7) / 8;
    plane_.resize(kBytesAtATime);
    samples_.resize(kBytesAtATime * 8 * info_.unit_bytes);
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    if (left_ == 0) return false;
    const std::size_t count =
        static_cast<std::size_t>(std::min<std::uint64_t>(left_, kBytesAtATime * 8));
    std::fill(samples_.begin(), samples_.end(), std::uint8_t{0});
    const auto bytes = std::span<std::uint8_t>(plane_).first((count + 7) / 8);
    for (std::size_t channel = 0; channel < planes_.size(); ++channel) {
      const std::size_t n = planes_[channel].read(bytes);
      if (n < bytes.size())
        throw FormatError(info_.name, sample_,
                          "expected " + std::to_string(sample_ + left_) + " samples of channel '" +
                              info_.channels[channel] + "', found about " +
                              std::to_string(sample_ + n * 8));
      spread(bytes, count, channel);
    }
    out.first = sample_;
    out.bytes = std::span<const std::uint8_t>(samples_).first(count * info_.unit_bytes);
    out.numbers = {};
    sample_ += count;
    left_ -= count;
    return true;
  }

 private:
  void read_header(const KeyFile::Group& header) {
    const std::string name = info_.name + "/header";
    left_ = key_number(header, "total samples", ~0ul / 16, name);
    info_.sample_rate_hz = parse_sample_rate(KeyFile::value(header, "samplerate"));
    const auto probes = key_number(header, "total probes", kMaxChannels, name);
    // Channels are numbered as on the device; those that were off are not there.
    bool unnamed = true;
    for (int channel = 0; channel < static_cast<int>(kMaxChannels) && planes_.size() < probes;
         ++channel) {
      BitPlane plane(*zip_, channel);
      if (!plane.exists()) {
        if (!KeyFile::value(header, "probe" + std::to_string(channel)).empty()) unnamed = false;
        continue;
      }
      planes_.push_back(std::move(plane));
      info_.channels.push_back(KeyFile::value(header, "probe" + std::to_string(channel)));
    }
    // Where 'total probes' counts what the analyser has, those that were off have no name.
    if (planes_.empty() || (planes_.size() < probes && !unnamed))
      throw FormatError(name, 0,
                        "expected members 'L-<channel>/0' of " + std::to_string(probes) +
                            " channels, found " + std::to_string(planes_.size()));
  }

  void spread(std::span<const std::uint8_t> bits, std::size_t count, std::size_t channel) {
    const auto mask = static_cast<std::uint8_t>(1u << (channel % 8));
    std::size_t at = channel / 8;
    for (std::size_t i = 0; i < count; ++i, at += info_.unit_bytes)
      if (((bits[i / 8] >> (i % 8)) & 1) != 0) samples_[at] |= mask;
  }

  std::unique_ptr<ZipReader> zip_;
  SampleInfo info_;
  std::vector<BitPlane> planes_;
  std::vector<std::uint8_t> plane_, samples_;
  std::uint64_t left_ = 0, sample_ = 0;
};

std::unique_ptr<SampleSource> open_zip(std::unique_ptr<ZipReader> zip) {
  const std::string name = zip->name() + "/header";
  const KeyFile keys = parse_key_file(zip->read_text("header", kMaxHeader), name);
  const KeyFile::Group* header = nullptr;
  unsigned long version = 1;
  for (const KeyFile::Group& group : keys.groups) {
    if (group.name == "version") version = key_number(group, "version", 1000, name);
    if (group.name == "header") header = &group;
  }
  if (header == nullptr) throw FormatError(name, 0, "expected a group [header], found none");
  if (!KeyFile::value(*header, "device mode").empty() || version >= 2)
    if (key_number(*header, "device mode", 1000, name) != 0)
      throw FormatError(name, 0, "expected logic samples (device mode 0), found another mode");
  if (version < 2) return std::make_unique<DsviewWords>(std::move(zip), *header);
  return std::make_unique<DsviewSource>(std::move(zip), *header);
}

}  // namespace

std::unique_ptr<SampleSource> open_dsview(const std::string& path) {
  return open_zip(std::make_unique<ZipReader>(path));
}

std::unique_ptr<SampleSource> open_dsview(const std::string& name,
                                          std::span<const std::uint8_t> bytes) {
  return open_zip(std::make_unique<ZipReader>(name, bytes));
}

}  // namespace citcat
