#include "formats/captures/lac.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "formats/captures/sample_buffer.h"
#include "formats/io/error.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

// What the program captures with five devices is 120 channels; its samples have 128 bits.
constexpr std::size_t kMostLacChannels = 128;
__extension__ typedef unsigned __int128 LacSample;

/// Base64 (RFC 4648, 4), as Json.NET writes arrays of bytes. False for what is none.
bool decode_base64(std::string_view text, std::vector<std::uint8_t>& out) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const auto digit = kDigits.find(c);
    if (digit == std::string_view::npos) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<std::uint8_t>(bits >> count));
  }
  return true;
}

class LacSource final : public SampleSource {
 public:
  explicit LacSource(std::unique_ptr<InputStream> input) {
    info_.name = input->name();
    read(parse(*input));
    buffer_ = SampleBuffer(info_.unit_bytes, false);
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    buffer_.clear();
    for (; !buffer_.full() && next_ < samples_.size(); next_ += info_.unit_bytes)
      buffer_.add(std::span(samples_).subspan(next_, info_.unit_bytes));
    if (buffer_.empty()) return false;
    out = buffer_.take();
    return true;
  }

 private:
  using Json = nlohmann::json;

  [[noreturn]] void fail(const std::string& message, std::uint64_t at = 0) const {
    throw FormatError(info_.name, at, message);
  }

  Json parse(InputStream& input) const {
    std::string text;
    for (auto block = input.next_block(); !block.empty(); block = input.next_block()) {
      if (text.size() + block.size() > kMostLacBytes) fail("expected a capture of at most 256 MiB");
      text.append(reinterpret_cast<const char*>(block.data()), block.size());
    }
    if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
    try {
      return Json::parse(text);
    } catch (const Json::parse_error& error) {
      fail("expected JSON, found something else", error.byte);
    }
  }

  const Json& member(const Json& object, const char* name) const {
    if (!object.is_object() || !object.contains(name))
      fail("expected a member '" + std::string(name) + "', found none");
    return object.at(name);
  }

  void read(const Json& capture) {
    const Json& settings = member(capture, "Settings");
    const Json& frequency = member(settings, "Frequency");
    if (!frequency.is_number()) fail("expected 'Frequency' to be a number");
    info_.sample_rate_hz = std::max(0.0, frequency.get<double>());
    const Json& channels = member(settings, "CaptureChannels");
    if (!channels.is_array() || channels.empty() || channels.size() > kMostLacChannels)
      fail("expected 'CaptureChannels' to list 1 to 128 channels");
    for (const Json& channel : channels) info_.channels.push_back(name_of(channel, settings));
    info_.unit_bytes = (channels.size() + 7) / 8;
    // Newer versions keep the samples with their channel, older ones a number for all.
    if (capture.contains("Samples") && capture.at("Samples").is_array()) {
      read_numbers(capture.at("Samples"));
    } else {
      read_planes(channels);
    }
    if (samples_.empty()) fail("expected samples, found none");
  }

  /// Channels are objects, or of the oldest versions numbers, with their names beside them.
  std::string name_of(const Json& channel, const Json& settings) const {
    const std::size_t index = info_.channels.size();
    std::string name;
    std::uint64_t number = index;
    if (channel.is_object()) {
      if (channel.contains("ChannelName") && channel.at("ChannelName").is_string())
        name = channel.at("ChannelName").get<std::string>();
      if (channel.contains("ChannelNumber") && channel.at("ChannelNumber").is_number_unsigned())
        number = channel.at("ChannelNumber").get<std::uint64_t>();
    } else if (channel.is_number_unsigned()) {
      number = channel.get<std::uint64_t>();
      if (settings.contains("ChannelTexts") && settings.at("ChannelTexts").is_array() &&
          settings.at("ChannelTexts").size() > index &&
          settings.at("ChannelTexts").at(index).is_string())
        name = settings.at("ChannelTexts").at(index).get<std::string>();
    } else {
      fail("expected a channel to be an object or a number");
    }
    return trimmed(name).empty() ? std::to_string(number) : name;
  }

  /// A sample is a number, or its digits as text: bit i is the level of the i-th channel.
  void read_numbers(const Json& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      LacSample value = 0;
      if (numbers[i].is_number_unsigned()) {
        value = numbers[i].get<std::uint64_t>();
      } else if (!numbers[i].is_string() || !parse_sample(numbers[i].get<std::string>(), value)) {
        fail("expected sample " + std::to_string(i) + " to be a number of at most 128 bits", i);
      }
      for (std::size_t byte = 0; byte < info_.unit_bytes; ++byte, value >>= 8)
        samples_.push_back(static_cast<std::uint8_t>(value));
    }
  }

  static bool parse_sample(std::string_view text, LacSample& value) {
    constexpr std::size_t kMostDigits = 39;
    if (text.empty() || text.size() > kMostDigits) return false;
    for (const char c : text) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return true;
  }

  /// Each channel has its own samples, a byte each.
  void read_planes(const Json& channels) {
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const Json& channel = channels[i];
      std::vector<std::uint8_t> plane;
      if (!channel.is_object() || !channel.contains("Samples") ||
          !channel.at("Samples").is_string() ||
          !decode_base64(channel.at("Samples").get_ref<const std::string&>(), plane))
        fail("expected samples of channel '" + shown(info_.channels[i]) +
             "' in base64, found none");
      if (i == 0) samples_.resize(plane.size() * info_.unit_bytes);
      if (plane.size() * info_.unit_bytes != samples_.size())
        fail("expected " + std::to_string(samples_.size() / info_.unit_bytes) +
             " samples of channel '" + shown(info_.channels[i]) + "', found " +
             std::to_string(plane.size()));
      for (std::size_t s = 0; s < plane.size(); ++s)
        set_level(std::span(samples_).subspan(s * info_.unit_bytes, info_.unit_bytes), i,
                  plane[s] != 0);
    }
  }

  SampleInfo info_;
  std::vector<std::uint8_t> samples_;
  std::size_t next_ = 0;
  SampleBuffer buffer_{1, false};
};

}  // namespace

std::unique_ptr<SampleSource> open_lac(std::unique_ptr<InputStream> input) {
  return std::make_unique<LacSource>(std::move(input));
}

bool is_lac(std::span<const std::uint8_t> prefix) {
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         text.find("\"Settings\"") != std::string_view::npos &&
         text.find("\"CaptureChannels\"") != std::string_view::npos;
}

}  // namespace citcat
