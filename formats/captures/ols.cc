#include "formats/captures/ols.h"

#include <string>
#include <vector>

#include "formats/captures/sample_buffer.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

// ";Channels: " beyond this is not from any of these analysers.
constexpr std::uint64_t kMaxOlsChannels = 1024;

class OlsSource final : public SampleSource {
 public:
  explicit OlsSource(std::unique_ptr<InputStream> input) : lines_(std::move(input)) {
    info_.name = lines_.name();
    while ((pending_ = lines_.next(line_)) && (trimmed(line_).empty() || line_[0] == ';'))
      read_setting(line_);
    if (channels_ == 0) lines_.fail("expected a line ';Channels: N', found none");
    for (std::uint64_t i = 0; i < channels_; ++i) info_.channels.push_back(std::to_string(i));
    info_.unit_bytes = static_cast<std::size_t>((channels_ + 7) / 8);
    sample_.resize(info_.unit_bytes);
    buffer_ = SampleBuffer(info_.unit_bytes, true);
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    buffer_.clear();
    while (!buffer_.full() && (pending_ || lines_.next(line_))) {
      pending_ = false;
      if (!trimmed(line_).empty() && line_[0] != ';') read_sample(line_);
    }
    if (buffer_.empty()) return false;
    out = buffer_.take();
    return true;
  }

 private:
  void read_setting(std::string_view line) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string_view key = trimmed(line.substr(1, colon - 1));
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (key == "Channels") {
      if (!parse_decimal(value, channels_) || channels_ == 0 || channels_ > kMaxOlsChannels)
        lines_.fail("expected 1 to " + std::to_string(kMaxOlsChannels) + " channels, found '" +
                    shown(value) + "'");
    } else if (key == "Rate") {
      info_.sample_rate_hz = parse_sample_rate(std::string(value));
    }
  }

  /// "<hexadecimal levels, last channel first>@<sample number>"
  void read_sample(std::string_view line) {
    const auto at = line.find('@');
    std::uint64_t number = 0;
    if (at == std::string_view::npos || !parse_decimal(trimmed(line.substr(at + 1)), number))
      lines_.fail("expected '<levels>@<sample number>', found '" + shown(line) + "'");
    if (any_ && number <= number_)
      lines_.fail("expected sample numbers to rise, found " + std::to_string(number) + " after " +
                  std::to_string(number_));
    number_ = number;
    any_ = true;
    const std::string_view digits = trimmed(line.substr(0, at));
    std::fill(sample_.begin(), sample_.end(), std::uint8_t{0});
    for (std::size_t i = 0; i < digits.size(); ++i) {
      std::uint64_t digit = 0;
      if (!parse_hexadecimal(digits.substr(digits.size() - 1 - i, 1), digit))
        lines_.fail("expected hexadecimal levels, found '" + shown(digits) + "'");
      if (i / 2 < sample_.size()) {
        sample_[i / 2] = static_cast<std::uint8_t>(sample_[i / 2] | digit << (4 * (i % 2)));
      } else if (digit != 0) {
        lines_.fail("expected levels of " + std::to_string(channels_) + " channels, found more");
      }
    }
    buffer_.add(sample_, number);
  }

  LineReader lines_;
  SampleInfo info_;
  std::uint64_t channels_ = 0;
  std::string_view line_;
  bool pending_ = false;
  std::vector<std::uint8_t> sample_;
  SampleBuffer buffer_{1, true};
  std::uint64_t number_ = 0;
  bool any_ = false;
};

}  // namespace

std::unique_ptr<SampleSource> open_ols(std::unique_ptr<InputStream> input) {
  return std::make_unique<OlsSource>(std::move(input));
}

}  // namespace citcat
