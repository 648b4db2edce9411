#include "capture/sample_capture.h"

#include <algorithm>
#include <filesystem>

#include "capture/hex.h"
#include "formats/error.h"
#include "formats/input.h"

namespace citcat {
namespace {

/// Name, size and hash of the file as stored.
Provenance::File describe_file(const std::string& path) {
  InputStream input(path);
  while (!input.next_block().empty()) {
  }
  return {std::filesystem::path(path).filename().string(), input.stored_bytes(),
          input.stored_hash().hex()};
}

// A line that never rises in so many bytes of samples is taken for one that was not connected.
constexpr std::uint64_t kScanBytes = std::uint64_t{1} << 28;

/// Levels that ever were high, one bit a channel.
std::vector<std::uint8_t> ever_high(SampleSource& source) {
  const std::size_t unit = source.info().unit_bytes;
  std::vector<std::uint8_t> high(unit);
  SampleBlock block;
  for (std::uint64_t bytes = 0; bytes < kScanBytes && source.next(block);
       bytes += block.bytes.size())
    for (std::size_t i = 0; i + unit <= block.bytes.size(); i += unit)
      for (std::size_t j = 0; j < unit; ++j) high[j] |= block.bytes[i + j];
  return high;
}

class SampleCapture final : public CaptureReader {
 public:
  SampleCapture(std::string format, std::vector<std::vector<std::string>> segments,
                const CaptureOptions& options, SampleOpener open,
                std::function<void(const PinCycle&)> on_cycle)
      : segments_(std::move(segments)),
        options_(options),
        open_(std::move(open)),
        on_cycle_(std::move(on_cycle)) {
    if (segments_.empty() || segments_[0].empty()) throw UsageError("no capture file was given");
    info_.format = std::move(format);
    if (!options_.channel_map_path.empty()) map_ = load_channel_map(options_.channel_map_path);
    open_segment(0);
  }

  const CaptureInfo& info() const override { return info_; }

  bool next(BusTransaction& out) override {
    while (decoder_) {
      if (decoder_->take(out)) {
        out.index = index_++;
        if (assignment_.address_mask != match_.bus->address_mask && out.is_memory())
          out.address.value &= assignment_.address_mask;
        return true;
      }
      if (ended_) {
        close_segment();
        break;
      }
      SampleBlock block;
      if (source_->next(block)) {
        any_samples_ = true;
        decoder_->decode(block);
      } else {
        decoder_->finish();
        ended_ = true;
      }
    }
    return false;
  }

  bool next_segment() override {
    if (decoder_ || segment_ + 1 >= segments_.size()) return false;
    open_segment(segment_ + 1);
    return true;
  }

 private:
  void open_segment(std::size_t segment) {
    segment_ = segment;
    source_ = open_(segments_[segment]);
    if (options_.channel_map_path.empty()) try_presets();
    match_ = choose_bus(source_->info(), map_, options_.cpu);
    assignment_ = assign_pins(match_, map_);
    info_.cpu = match_.bus->cpu;
    info_.has_clock = true;
    info_.bus.bus_bytes = match_.bus->bus_bytes;
    explain_missing();
    find_dead_line();
    info_.address_mask = info_.bus.address_mask = assignment_.address_mask;
    decoder_ = match_.bus->make(source_->info(), {*match_.bus, assignment_});
    decoder_->on_cycle = on_cycle_;
    info_.has_positions = decoder_->has_positions();
    ended_ = any_samples_ = false;
    for (const std::string& path : segments_[segment])
      if (path != "-") info_.files.push_back(describe_file(path));
  }

  /// Channels without names may be those of a known set-up: the samples themselves tell.
  void try_presets() {
    const auto& channels = source_->info().channels;
    const bool unnamed = std::all_of(channels.begin(), channels.end(), [](const std::string& name) {
      return name.find_first_not_of("0123456789") == std::string::npos;
    });
    if (!unnamed || is_pipe()) return;
    for (const ChannelPreset& preset : channel_presets()) {
      if (preset.channels != channels.size() || !decodes_with(preset)) continue;
      const std::string name = std::string("preset:") + preset.name;
      map_ = load_channel_map(name);
      info_.warnings.push_back("the channels have no names: taken as " + name + " (" +
                               preset.description + "), with which they decode");
      return;
    }
  }

  bool decodes_with(const ChannelPreset& preset) const {
    constexpr std::uint64_t kTrialBytes = 1 << 20;
    constexpr std::size_t kConvincing = 64;
    try {
      const ChannelMap map = load_channel_map(std::string("preset:") + preset.name);
      const auto source = open_(segments_[segment_]);
      const BusMatch match = choose_bus(source->info(), map, options_.cpu);
      const PinAssignment assignment = assign_pins(match, map);
      const auto decoder = match.bus->make(source->info(), {*match.bus, assignment});
      SampleBlock block;
      std::size_t transactions = 0;
      for (std::uint64_t bytes = 0; bytes < kTrialBytes && source->next(block);
           bytes += block.bytes.size()) {
        decoder->decode(block);
        for (BusTransaction ignored; decoder->take(ignored);) ++transactions;
      }
      return transactions >= kConvincing;
    } catch (const FormatError&) {
      return false;
    }
  }

  void explain_missing() {
    std::string last_cost, names;
    const auto flush = [&] {
      if (!names.empty()) info_.warnings.push_back("not captured: " + names + ": " + last_cost);
      names.clear();
    };
    for (const PinMatch& pin : match_.pins) {
      if (pin.channel >= 0) continue;
      if (pin.pin->cost != last_cost) flush();
      last_cost = pin.pin->cost;
      names += (names.empty() ? "" : ", ") + pin.pin->name;
    }
    flush();
  }

  /// The 8086 shows S6, always low, on the pin of its highest address line, so that a probe that
  /// was not connected looks like a program that never went there. Only the whole capture can
  /// tell; a line that a channel map names explicitly is believed.
  void find_dead_line() {
    if (match_.bus->dead_line == nullptr || is_pipe()) return;
    for (const PinMatch& pin : match_.pins) {
      if (pin.pin->name != match_.bus->dead_line || pin.channel < 0) continue;
      const bool by_person =
          !options_.channel_map_path.empty() && options_.channel_map_path.rfind("preset:", 0) != 0;
      if (by_person && map_.pins.count(pin.pin->name) != 0) return;
      const auto channel = static_cast<std::size_t>(pin.channel);
      const auto high = ever_high(*open_(segments_[segment_]));
      if (((high[channel / 8] >> (channel % 8)) & 1) != 0) return;
      assignment_.address_mask &= ~(std::uint32_t{1} << pin.pin->address_bit);
      info_.warnings.push_back(
          pin.pin->name + " never rises: taken as not captured, addresses are known modulo " +
          hex(assignment_.address_mask + 1, 5) + " (a channel map that names it overrides this)");
    }
  }

  void close_segment() {
    for (const std::string& line : decoder_->warnings()) info_.warnings.push_back(line);
    for (const std::string& line : source_->warnings()) info_.warnings.push_back(line);
    decoder_.reset();
    if (!any_samples_) throw FormatError(source_->info().name, 0, "expected samples, found none");
    source_.reset();
  }

  /// Read once, so that nobody can look ahead.
  bool is_pipe() const { return segments_[segment_][0] == "-"; }

  std::vector<std::vector<std::string>> segments_;
  CaptureOptions options_;
  SampleOpener open_;
  std::function<void(const PinCycle&)> on_cycle_;
  ChannelMap map_;
  CaptureInfo info_;
  std::size_t segment_ = 0;
  std::unique_ptr<SampleSource> source_;
  BusMatch match_;
  PinAssignment assignment_;
  std::unique_ptr<BusDecoder> decoder_;
  bool ended_ = false, any_samples_ = false;
  std::uint64_t index_ = 0;
};

}  // namespace

std::unique_ptr<CaptureReader> open_sample_capture(std::string format,
                                                   std::vector<std::vector<std::string>> segments,
                                                   const CaptureOptions& options, SampleOpener open,
                                                   std::function<void(const PinCycle&)> on_cycle) {
  return std::make_unique<SampleCapture>(std::move(format), std::move(segments), options,
                                         std::move(open), std::move(on_cycle));
}

}  // namespace citcat
