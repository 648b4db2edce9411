#include "cli/report/capture_waveform.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "capture/import/sample_formats.h"
#include "formats/captures/samples.h"

namespace citcat {

namespace {

/// Samples shown on both sides of the cycle.
constexpr std::uint64_t kAround = 96;
/// A cycle may wait for long: no more of it is shown.
constexpr std::uint64_t kMostSamples = 2048;

/// The samples in which a bus cycle was.
struct CycleSamples {
  std::uint64_t begin = 0, end = 0;
};

/// The samples of the cycle that the transaction was made from. A decoder tells cycles before their
/// transactions, and may be ahead of them by some: it is the last one of the same kind and address.
std::optional<CycleSamples> cycle_of(std::string_view format, const std::string& path,
                                     const CaptureOptions& options, std::uint64_t transaction) {
  constexpr std::size_t kRemembered = 4096;
  std::deque<PinCycle> cycles;
  const auto reader = open_capture_with_cycles(format, {path}, options, [&](const PinCycle& cycle) {
    cycles.push_back(cycle);
    if (cycles.size() > kRemembered) cycles.pop_front();
  });
  BusTransaction t;
  do {
    while (reader->next(t)) {
      if (t.index != transaction) continue;
      const auto found = std::find_if(cycles.rbegin(), cycles.rend(), [&](const PinCycle& c) {
        return c.op == t.op && c.address == t.address;
      });
      if (found == cycles.rend()) return std::nullopt;
      return CycleSamples{found->begin, found->end};
    }
  } while (reader->next_segment());
  return std::nullopt;
}

/// Levels of all channels, sample by sample, from `first` to `last`.
class Levels {
 public:
  Levels(const SampleInfo& info, std::uint64_t first, std::uint64_t last)
      : info_(info), next_(first), last_(last), levels_(info.channels.size()) {}

  /// False where nothing of what follows is wanted.
  bool add(const SampleBlock& block) {
    const std::size_t count = block.bytes.size() / info_.unit_bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t number = block.numbers.empty() ? block.first + i : block.numbers[i];
      hold_until(number);
      if (number > last_) return false;
      const auto sample = block.bytes.subspan(i * info_.unit_bytes, info_.unit_bytes);
      held_.assign(sample.begin(), sample.end());
    }
    return true;
  }
  void end() { hold_until(last_ + 1); }
  nlohmann::ordered_json json() const {
    nlohmann::ordered_json channels = nlohmann::ordered_json::array();
    for (std::size_t c = 0; c < levels_.size(); ++c) {
      channels.push_back({{"name", info_.channels[c]}, {"levels", levels_[c]}});
    }
    return channels;
  }

 private:
  /// Between two samples of a file that holds changes only, the levels stay.
  void hold_until(std::uint64_t sample) {
    if (held_.empty()) return;
    for (; next_ < sample && next_ <= last_; ++next_) {
      for (std::size_t c = 0; c < levels_.size(); ++c) {
        levels_[c] += (held_[c / 8] >> c % 8 & 1) != 0 ? '1' : '0';
      }
    }
  }

  const SampleInfo& info_;
  std::uint64_t next_;  ///< sample whose levels are wanted next
  std::uint64_t last_;
  std::vector<std::uint8_t> held_;  ///< the last sample; empty: there was none
  std::vector<std::string> levels_;
};

}  // namespace

nlohmann::ordered_json capture_waveform(const std::string& path, const CaptureOptions& options,
                                        std::uint64_t transaction) {
  const CaptureFormat* const format =
      options.format.empty() ? detect_capture_format(path) : find_capture_format(options.format);
  if (format == nullptr) return nullptr;
  const std::unique_ptr<SampleSource> source = open_samples(format->id, {path});
  if (source == nullptr) return nullptr;
  const auto cycle = cycle_of(format->id, path, options, transaction);
  if (!cycle) return nullptr;
  const std::uint64_t first = cycle->begin - std::min(cycle->begin, kAround);
  const std::uint64_t last = std::min(cycle->end + kAround, first + kMostSamples);
  Levels levels(source->info(), first, last);
  SampleBlock block;
  while (source->next(block) && levels.add(block)) {
  }
  levels.end();
  return {{"transaction", transaction},
          {"begin", cycle->begin},
          {"end", cycle->end},
          {"first", first},
          {"sample_rate_hz", source->info().sample_rate_hz},
          {"channels", levels.json()}};
}

}  // namespace citcat
