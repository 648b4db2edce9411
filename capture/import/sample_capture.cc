#include "capture/import/sample_capture.h"

#include <algorithm>
#include <filesystem>

#include "capture/bus/clock_check.h"
#include "capture/bus/hex.h"
#include "capture/import/still_lines.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat {

Provenance::File describe_file(const std::string& path) {
  InputStream input(path);
  while (!input.next_block().empty()) {
  }
  return {std::filesystem::path(path).filename().string(), input.stored_bytes(),
          input.stored_hash().hex()};
}

namespace {

// So much of the beginning is looked at before decoding begins. At two samples a clock of an IBM PC
// it is a third of a second: the BIOS was there with the tick of its timer, six times.
constexpr std::size_t kLookAheadBytes = std::size_t{1} << 24;

/// Keeps the beginning of a source, so that it can be looked at before it is decoded: pipes cannot
/// be read twice, and files are decompressed once.
class LookAhead {
 public:
  explicit LookAhead(std::unique_ptr<SampleSource> source) : source_(std::move(source)) {
    SampleBlock block;
    for (std::size_t bytes = 0; bytes < kLookAheadBytes && source_->next(block);
         bytes += block.bytes.size())
      kept_.push_back({block.first,
                       {block.bytes.begin(), block.bytes.end()},
                       {block.numbers.begin(), block.numbers.end()}});
  }

  SampleSource& source() { return *source_; }
  const SampleInfo& info() const { return source_->info(); }
  std::size_t kept_blocks() const { return kept_.size(); }
  SampleBlock kept_block(std::size_t i) const {
    return {kept_[i].first, kept_[i].bytes, kept_[i].numbers};
  }

  /// The next block to decode; what was kept is forgotten as it is handed out.
  bool next(SampleBlock& out) {
    if (next_ > 0 && next_ <= kept_.size()) kept_[next_ - 1] = {};
    if (next_ >= kept_.size()) return source_->next(out);
    out = kept_block(next_++);
    return true;
  }

  /// Whether the channel is high in any sample that was kept.
  bool ever_high(std::size_t channel) const {
    const std::size_t unit = info().unit_bytes;
    unsigned levels = 0;
    for (const Kept& block : kept_)
      for (std::size_t i = channel / 8; i < block.bytes.size(); i += unit) levels |= block.bytes[i];
    return ((levels >> (channel % 8)) & 1) != 0;
  }

 private:
  struct Kept {
    std::uint64_t first = 0;
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> numbers;
  };

  std::unique_ptr<SampleSource> source_;
  std::vector<Kept> kept_;
  std::size_t next_ = 0;
};

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
        own_reads_ += reads_own_register(out) ? 1 : 0;
        if (out.is_memory() && (out.address.value & dead_bit_) != 0)
          throw FormatError(source_->info().name, out.clock,
                            std::string("expected ") + match_.bus->dead_line +
                                " to stay low as in the beginning of the capture, found it high "
                                "(name it in a channel map)");
        return true;
      }
      if (ended_) {
        close_segment();
        break;
      }
      SampleBlock block;
      if (source_->next(block)) {
        any_samples_ = true;
        decode(block);
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
    source_ = std::make_unique<LookAhead>(open_(segments_[segment]));
    if (options_.channel_map_path.empty()) try_presets();
    match_ = choose_bus(source_->info(), map_, options_.cpu);
    assignment_ = assign_pins(match_, map_);
    info_.cpu = match_.cpu;
    info_.has_clock = true;
    info_.clock_hz = source_->info().sample_rate_hz;
    info_.bus.bus_bytes = match_.bus->bus_bytes;
    explain_missing();
    find_dead_line();
    find_still_lines();
    check_clock();
    info_.address_mask = info_.bus.address_mask = assignment_.address_mask;
    decoder_ = match_.bus->make(source_->info(), {*match_.bus, assignment_});
    decoder_->on_cycle = on_cycle_;
    info_.has_positions = decoder_->has_positions();
    info_.counts = decoder_->counts();
    ended_ = any_samples_ = false;
    for (const std::string& path : segments_[segment]) info_.files.push_back(describe_file(path));
  }

  /// What a clock that was sampled too slowly makes undecodable is said to be its doing.
  void decode(const SampleBlock& block) {
    try {
      decoder_->decode(block);
    } catch (const FormatError& error) {
      if (!slow_clock_ && still_.empty()) throw;
      throw FormatError(
          source_->info().name, 0,
          (slow_clock_ ? *slow_clock_ + "; " : still_) + "so decoding fails: " + error.what());
    }
  }

  void find_still_lines() {
    StillLines lines(source_->info());
    for (std::size_t i = 0; i < source_->kept_blocks(); ++i) lines.add(source_->kept_block(i));
    still_.clear();
    for (std::string& line : lines.complaints(match_)) info_.warnings.push_back(std::move(line));
    for (const std::string& line : lines.complaints(match_, true)) still_ += line + "; ";
  }

  void check_clock() {
    ClockCheck check(source_->info(), {*match_.bus, assignment_});
    for (std::size_t i = 0; i < source_->kept_blocks(); ++i) check.add(source_->kept_block(i));
    slow_clock_ = check.complaint();
    if (slow_clock_) info_.warnings.push_back(*slow_clock_);
  }

  /// Channels without names may be those of a known set-up: the samples themselves tell.
  void try_presets() {
    const auto& channels = source_->info().channels;
    const bool unnamed = std::all_of(channels.begin(), channels.end(), [](const std::string& name) {
      return name.find_first_not_of("0123456789") == std::string::npos;
    });
    if (!unnamed) return;
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
    constexpr std::size_t kTrialBytes = 1 << 20;
    constexpr std::size_t kConvincing = 64;
    try {
      const ChannelMap map = load_channel_map(std::string("preset:") + preset.name);
      const BusMatch match = choose_bus(source_->info(), map, options_.cpu);
      const PinAssignment assignment = assign_pins(match, map);
      const auto decoder = match.bus->make(source_->info(), {*match.bus, assignment});
      std::size_t transactions = 0, bytes = 0;
      for (std::size_t i = 0; i < source_->kept_blocks() && bytes < kTrialBytes; ++i) {
        const SampleBlock block = source_->kept_block(i);
        bytes += block.bytes.size();
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
  /// was not connected looks like a program that never went there. Its long absence
  /// tells; a line that a channel map names explicitly is believed.
  void find_dead_line() {
    dead_bit_ = 0;
    if (match_.bus->dead_line == nullptr) return;
    for (const PinMatch& pin : match_.pins) {
      if (pin.pin->name != match_.bus->dead_line || pin.channel < 0) continue;
      const bool by_person =
          !options_.channel_map_path.empty() && options_.channel_map_path.rfind("preset:", 0) != 0;
      if (by_person && map_.pins.count(pin.pin->name) != 0) return;
      if (pin.inverted || source_->ever_high(static_cast<std::size_t>(pin.channel))) return;
      dead_bit_ = std::uint32_t{1} << pin.pin->address_bit;
      assignment_.address_mask &= ~dead_bit_;
      info_.warnings.push_back(
          pin.pin->name +
          " never rises: assumed not to be captured, so addresses are known modulo " +
          hex(assignment_.address_mask + 1, 5) + " (a channel map that names it overrides this)");
    }
  }

  /// Whether an 80186 reads a register of the devices on its chip, which are at FF00 to FFFF until
  /// a program moves them (AP-186, 2.8): what it gets does not come over the bus.
  bool reads_own_register(const BusTransaction& t) const {
    constexpr std::uint32_t kBlock = 0xff00;
    return t.op == BusOp::io_read && (t.address.value & kBlock) == kBlock &&
           cpu_traits(match_.cpu).instructions == InstructionSet::i186;
  }

  void close_segment() {
    if (own_reads_ != 0)
      info_.warnings.push_back(
          std::to_string(own_reads_) +
          " reads of ports FF00 to FFFF, where the devices on the processor's own chip are: their "
          "values may not be those on the bus");
    own_reads_ = 0;
    for (const std::string& line : decoder_->warnings()) info_.warnings.push_back(line);
    for (const std::string& line : source_->source().warnings()) info_.warnings.push_back(line);
    decoder_.reset();
    if (!any_samples_) throw FormatError(source_->info().name, 0, "expected samples, found none");
    if (slow_clock_ && index_ == 0) throw FormatError(source_->info().name, 0, *slow_clock_);
    source_.reset();
  }

  std::vector<std::vector<std::string>> segments_;
  CaptureOptions options_;
  SampleOpener open_;
  std::function<void(const PinCycle&)> on_cycle_;
  ChannelMap map_;
  CaptureInfo info_;
  std::size_t segment_ = 0;
  std::unique_ptr<LookAhead> source_;
  BusMatch match_;
  PinAssignment assignment_;
  std::uint32_t dead_bit_ = 0;             ///< address bit that is taken as not captured
  std::optional<std::string> slow_clock_;  ///< why its samples may make no sense
  std::string still_;                      ///< the same, of lines that never move
  std::unique_ptr<BusDecoder> decoder_;
  bool ended_ = false, any_samples_ = false;
  std::uint64_t index_ = 0;
  std::uint64_t own_reads_ = 0;  ///< in this segment
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
