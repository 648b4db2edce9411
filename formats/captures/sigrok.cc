#include "formats/captures/sigrok.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/io/error.h"
#include "formats/io/key_file.h"
#include "formats/io/zip_reader.h"

namespace citcat {
namespace {

// Text members are small; anything larger is not what it claims to be.
constexpr std::size_t kMaxTextBytes = 1 << 20;
// About this many bytes of samples are handed out at a time: what is decoded of them stays in the
// first-level cache until it is taken.
constexpr std::size_t kBlockBytes = 16 * 1024;

class SigrokSource final : public SampleSource {
 public:
  explicit SigrokSource(std::unique_ptr<ZipReader> zip) : zip_(std::move(zip)) {
    info_.name = zip_->name();
    const std::string version = zip_->read_text("version", kMaxTextBytes);
    if (version.substr(0, 1) != "1" && version.substr(0, 1) != "2")
      throw FormatError(info_.name + "/version", 0,
                        "expected session version 1 or 2, found '" + version.substr(0, 8) + "'");
    read_metadata();
    find_chunks();
    buffer_.resize(std::max<std::size_t>(1, kBlockBytes / info_.unit_bytes) * info_.unit_bytes);
  }

  const SampleInfo& info() const override { return info_; }

  std::vector<std::string> warnings() const override {
    if (without_bits_.empty()) return {};
    return {"samples have " + std::to_string(info_.unit_bytes * 8) +
            " bits, and none for these probes: " + without_bits_};
  }

  bool next(SampleBlock& out) override {
    for (;;) {
      if (!member_) {
        if (chunk_ == chunks_.size()) return false;
        member_.emplace(*zip_, chunks_[chunk_++]);
      }
      const auto bytes = member_->read_some(buffer_);
      const std::size_t n = bytes.size();
      if (n % info_.unit_bytes != 0)
        throw FormatError(member_->name(), member_->offset(),
                          "expected whole samples of " + std::to_string(info_.unit_bytes) +
                              " bytes, found the end within one");
      if (n == 0) {
        member_.reset();
        continue;
      }
      out.first = sample_;
      out.bytes = bytes;
      out.numbers = {};
      sample_ += n / info_.unit_bytes;
      return true;
    }
  }

 private:
  void read_metadata() {
    const std::string name = info_.name + "/metadata";
    const KeyFile keys = parse_key_file(zip_->read_text("metadata", kMaxTextBytes), name);
    for (const KeyFile::Group& group : keys.groups) {
      capture_file_ = KeyFile::value(group, "capturefile");
      if (capture_file_.empty()) continue;
      read_device(group, name);
      return;
    }
    throw FormatError(name, 0,
                      "expected a device with a 'capturefile', found none: this session "
                      "holds no logic samples");
  }

  void read_device(const KeyFile::Group& group, const std::string& name) {
    const auto probes = key_number(group, "total probes", kMaxChannels, name);
    info_.unit_bytes = key_number(group, "unitsize", kMaxChannels / 8, name);
    if (probes == 0 || info_.unit_bytes == 0)
      throw FormatError(name, 0,
                        "expected 'total probes' and 'unitsize' to be more than 0, found " +
                            std::to_string(probes) + " and " + std::to_string(info_.unit_bytes));
    const unsigned long bits = info_.unit_bytes * 8;
    // Unused probes have no name: their bits are there all the same.
    for (unsigned long i = 1; i <= std::min(probes, bits); ++i)
      info_.channels.push_back(KeyFile::value(group, "probe" + std::to_string(i)));
    if (probes > bits) leave_out_unused(group, probes);
    info_.sample_rate_hz = parse_sample_rate(KeyFile::value(group, "samplerate"));
  }

  /// Some programs count the channels that the analyser has, and not those that were on (libsigrok
  /// 0.2 and 0.3, some files of 0.5 and 0.6): a probe without bits was not captured.
  void leave_out_unused(const KeyFile::Group& group, unsigned long probes) {
    while (info_.channels.size() > 1 && info_.channels.back().empty()) info_.channels.pop_back();
    for (unsigned long i = info_.unit_bytes * 8 + 1; i <= probes; ++i) {
      const std::string probe = KeyFile::value(group, "probe" + std::to_string(i));
      if (!probe.empty()) without_bits_ += (without_bits_.empty() ? "" : ", ") + probe;
    }
  }

  /// Members `capturefile` alone or `capturefile-1`, `-2`, ... in numeric order, without a hole.
  void find_chunks() {
    const int whole = zip_->find(capture_file_);
    if (whole >= 0) {
      chunks_.push_back(static_cast<std::size_t>(whole));
      return;
    }
    std::vector<std::pair<unsigned long, std::size_t>> numbered;
    const std::string prefix = capture_file_ + "-";
    for (std::size_t i = 0; i < zip_->entries().size(); ++i) {
      const std::string& entry = zip_->entries()[i].name;
      if (entry.compare(0, prefix.size(), prefix) != 0) continue;
      const std::string digits = entry.substr(prefix.size());
      if (digits.empty() || digits.size() > 9 ||
          digits.find_first_not_of("0123456789") != std::string::npos)
        continue;
      numbered.emplace_back(std::stoul(digits), i);
    }
    std::sort(numbered.begin(), numbered.end());
    for (std::size_t i = 0; i < numbered.size(); ++i) {
      if (numbered[i].first != i + 1)
        throw FormatError(info_.name, 0,
                          "expected member '" + prefix + std::to_string(i + 1) + "', found '" +
                              prefix + std::to_string(numbered[i].first) + "'");
      chunks_.push_back(numbered[i].second);
    }
    if (chunks_.empty())
      throw FormatError(info_.name, 0,
                        "expected samples in '" + prefix + "1', found no such member");
  }

  std::unique_ptr<ZipReader> zip_;
  SampleInfo info_;
  std::string capture_file_;
  std::string without_bits_;  ///< names of probes
  std::vector<std::size_t> chunks_;
  std::size_t chunk_ = 0;
  std::optional<ZipReader::Member> member_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t sample_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> open_sigrok(const std::string& path) {
  return std::make_unique<SigrokSource>(std::make_unique<ZipReader>(path));
}

std::unique_ptr<SampleSource> open_sigrok(const std::string& name,
                                          std::span<const std::uint8_t> bytes) {
  return std::make_unique<SigrokSource>(std::make_unique<ZipReader>(name, bytes));
}

}  // namespace citcat
