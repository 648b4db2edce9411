#include "capture/inspect/lint.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "capture/bus/channel_map.h"
#include "capture/import/sample_formats.h"
#include "capture/import/still_lines.h"
#include "capture/inspect/channel_activity.h"
#include "capture/inspect/exchanged_lines.h"
#include "events/machine/cpu_traits.h"
#include "events/machine/memory_image.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

// Fewer distances say nothing of their mean.
constexpr std::uint64_t kEnoughDistances = 1000;
// No device of a PC holds READY back for so many clocks (a refresh cycle takes a dozen).
constexpr std::uint32_t kManyWaits = 256;
// A pause this many times the mean distance of two transactions is no wait state.
constexpr double kJumpFactor = 1000;
// More differences than this in one bit alone are its line's doing.
constexpr std::uint64_t kOneBitFault = 8;
constexpr int kBits = 8;
// So much of the beginning says whether two lines are exchanged.
constexpr std::size_t kExchangeBytes = std::size_t{1} << 18;

/// Collects the occurrences of one check.
struct Tally {
  std::uint64_t count = 0, transaction = 0, clock = 0;
  void add(const BusTransaction& t) {
    if (count++ == 0) {
      transaction = t.index;
      clock = t.clock;
    }
  }
};

class Linter {
 public:
  explicit Linter(const CaptureInfo& info) : has_data_(info.has_data), has_clock_(info.has_clock) {}

  void add(const BusTransaction& t) {
    ++transactions_;
    if (t.op == BusOp::instruction_start) return;
    check_clock(t);
    if (!t.is_memory()) return;
    check_shape(t);
    ++accesses_;
    lines_.add(t, has_data_);
    if (has_data_) check_data(t);
  }

  void add_cycle(const PinCycle& cycle) {
    if (cycle.wait_clocks < kManyWaits) return;
    if (waits_.count++ == 0) waits_.clock = cycle.begin;
  }

  void begin_segment() {
    memory_ = MemoryImage();
    last_clock_.reset();
    lines_.begin_segment();
  }

  std::uint64_t transactions() const { return transactions_; }

  void report(const CaptureInfo& info, std::vector<LintFinding>& out) const {
    report_lines(info.bus, out);
    report_data(out);
    report(out, "line-shape", FindingConfidence::certain, shape_,
           "line transfers that are not aligned to their size, or none of a line's size");
    report(out, "clock-backwards", FindingConfidence::certain, backwards_,
           "transactions earlier than the one before");
    report(out, "many-wait-states", FindingConfidence::possible, waits_,
           "bus cycles of more than " + std::to_string(kManyWaits) +
               " wait states: is READY probed, did the clock stop?");
    report_jumps(out);
  }

 private:
  static void report(std::vector<LintFinding>& out, const char* check, FindingConfidence confidence,
                     const Tally& tally, const std::string& text) {
    if (tally.count != 0)
      out.push_back({check, confidence, tally.count, tally.transaction, tally.clock, text});
  }

  void check_clock(const BusTransaction& t) {
    if (!has_clock_ || !t.has(kClockKnown)) return;
    if (last_clock_ && t.clock < *last_clock_) {
      backwards_.add(t);
    } else if (last_clock_) {
      const std::uint64_t distance = t.clock - *last_clock_;
      distance_sum_ += distance;
      ++distances_;
      if (distance > longest_) {
        longest_ = distance;
        longest_at_ = t;
      }
    }
    last_clock_ = t.clock;
  }

  void check_shape(const BusTransaction& t) {
    if (!t.has(kLine)) return;
    const bool size = t.size == 16 || t.size == 32;
    if (!size || t.address.value % t.size != 0) shape_.add(t);
  }

  /// Every byte must be what the processor last read or wrote there.
  void check_data(const BusTransaction& t) {
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const PhysAddr address = t.address.plus32(i);
      const std::uint8_t value = t.data[i];
      if (t.op != BusOp::data_write) {
        const auto known = memory_.byte(address);
        if (known) ++compared_;
        if (known && *known != value) count_difference(t, address, *known ^ value);
      }
      memory_.set(address, value);
    }
  }

  void count_difference(const BusTransaction& t, PhysAddr address, unsigned difference) {
    changed_.add(t);
    if (t.op == BusOp::code_read) changed_code_.add(t);
    if (t.has(kLine)) changed_lines_.add(t);
    ++changed_pages_[address.page()];
    for (int bit = 0; bit < kBits; ++bit)
      if (difference == 1u << bit) ++single_bit_[static_cast<std::size_t>(bit)];
  }

  void report_lines(const BusModel& bus, std::vector<LintFinding>& out) const {
    for (LineCheck::Finding& found : lines_.findings(bus)) {
      out.push_back({found.check, found.confidence, accesses_, 0, 0, std::move(found.text)});
    }
  }

  void report_data(std::vector<LintFinding>& out) const {
    if (changed_.count == 0) return;
    for (int bit = 0; bit < kBits; ++bit) {
      const std::uint64_t here = single_bit_[static_cast<std::size_t>(bit)];
      if (here < kOneBitFault || here * 10 < changed_.count * 9) continue;
      report(out, "data-line", FindingConfidence::likely, changed_,
             "reads differ from the last value of their byte in bit " + std::to_string(bit) +
                 " alone: look at its data line");
      return;
    }
    // Devices and DMA change a few places; a bad probe changes everything.
    const bool everywhere = changed_.count * 20 > compared_ && changed_pages_.size() > 8;
    report(out, "changed-without-writer",
           everywhere ? FindingConfidence::likely : FindingConfidence::possible, changed_,
           "bytes read that nobody was seen writing, in " + std::to_string(changed_pages_.size()) +
               " pages of 4 KiB: DMA, a device in memory, or a read decoded wrongly");
    report(out, "changed-code", FindingConfidence::possible, changed_code_,
           "of these are instruction fetches");
    report(out, "cache-line", FindingConfidence::possible, changed_lines_,
           "of these came with line fills that contradict the line's last contents");
  }

  void report_jumps(std::vector<LintFinding>& out) const {
    if (distances_ < kEnoughDistances) return;
    const double mean = static_cast<double>(distance_sum_) / static_cast<double>(distances_);
    if (static_cast<double>(longest_) <= mean * kJumpFactor) return;
    Tally tally{1, longest_at_.index, longest_at_.clock};
    report(out, "clock-jump", FindingConfidence::possible, tally,
           "a pause of " + std::to_string(longest_) +
               " clocks before this transaction: a halt, or "
               "samples that are missing");
  }

  bool has_data_, has_clock_;
  std::uint64_t transactions_ = 0, accesses_ = 0, compared_ = 0;
  LineCheck lines_;
  MemoryImage memory_;
  Tally changed_, changed_code_, changed_lines_, shape_, backwards_, waits_;
  std::map<FrameNumber, std::uint64_t> changed_pages_;
  std::array<std::uint64_t, kBits> single_bit_{};
  std::optional<std::uint64_t> last_clock_;
  std::uint64_t distance_sum_ = 0, distances_ = 0, longest_ = 0;
  BusTransaction longest_at_;
};

/// Pulses of one sample on a channel that otherwise moves slowly: noise, or too low a sample rate.
class GlitchFinder {
 public:
  explicit GlitchFinder(const SampleInfo& info) : info_(info), channels_(info.channels.size()) {}

  void add(const SampleBlock& block) {
    if (!block.numbers.empty()) return;
    const std::size_t unit = info_.unit_bytes;
    if (last_.empty())
      last_.assign(block.bytes.begin(), block.bytes.begin() + static_cast<std::ptrdiff_t>(unit));
    for (std::size_t i = 0; i + unit <= block.bytes.size(); i += unit, ++number_)
      for (std::size_t j = 0; j < unit; ++j) {
        const std::uint8_t now = block.bytes[i + j];
        const unsigned changed = static_cast<unsigned>(now ^ last_[j]);
        if (changed == 0) continue;
        last_[j] = now;
        for (std::size_t bit = 0; bit < 8; ++bit)
          if (((changed >> bit) & 1) != 0 && j * 8 + bit < channels_.size())
            edge(channels_[j * 8 + bit]);
      }
  }

  void report(std::vector<LintFinding>& out) const {
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      const Channel& channel = channels_[i];
      // Rare among longer ones: a channel that always moves like that is a clock.
      if (channel.pulses == 0 || channel.pulses * 50 > channel.edges) continue;
      out.push_back({"glitch", FindingConfidence::possible, channel.pulses, 0, channel.first,
                     "pulses of one sample on channel '" + info_.channels[i] + "' among " +
                         std::to_string(channel.edges) + " changes"});
    }
  }

 private:
  struct Channel {
    std::uint64_t last_edge = 0, edges = 0, pulses = 0, first = 0;
  };

  void edge(Channel& channel) {
    if (channel.edges++ != 0 && number_ - channel.last_edge == 1 && channel.pulses++ == 0)
      channel.first = channel.last_edge;
    channel.last_edge = number_;
  }

  SampleInfo info_;
  std::vector<Channel> channels_;
  std::vector<std::uint8_t> last_;
  std::uint64_t number_ = 0;
};

// Enough samples to find a noisy channel.
constexpr std::uint64_t kGlitchBytes = std::uint64_t{1} << 26;

void find_glitches(std::string_view format, const std::vector<std::string>& paths,
                   std::vector<LintFinding>& out) {
  const auto samples = open_samples(format, paths);
  if (!samples) return;
  GlitchFinder finder(samples->info());
  SampleBlock block;
  for (std::uint64_t bytes = 0; bytes < kGlitchBytes && samples->next(block);
       bytes += block.bytes.size())
    finder.add(block);
  finder.report(out);
}

/// Looks for exchanged lines on the buses of processors without a cache, which fetch all code
/// there.
void find_exchanged(std::string_view format, const std::vector<std::string>& paths,
                    const CaptureOptions& options, std::vector<LintFinding>& out) {
  const auto samples = open_samples(format, paths);
  if (!samples) return;
  const ChannelActivity activity(*samples, kExchangeBytes);
  try {
    ChannelMap map;
    if (!options.channel_map_path.empty()) map = load_channel_map(options.channel_map_path);
    const BusMatch match = choose_bus(activity.info(), map, options.cpu);
    StillLines still(activity.info());
    for (const SampleBlock& block : activity.blocks()) still.add(block);
    const bool failed = std::any_of(out.begin(), out.end(), [](const LintFinding& finding) {
      return finding.check == "not-decodable";
    });
    std::vector<std::string> complaints = still.complaints(match, failed);
    // With a line that is held, exchanging others may only hide what it makes wrong.
    const bool is_done =
        !complaints.empty() || cpu_traits(match.cpu).instructions >= InstructionSet::i486;
    for (std::string& line : complaints)
      out.push_back({"still-line", FindingConfidence::likely, 1, 0, 0, std::move(line)});
    if (is_done) return;
    PinAssignment assignment = assign_pins(match, map);
    for (const ExchangedLines& lines : find_exchanged_lines(activity, match, assignment))
      out.push_back({lines.first == lines.second ? "inverted-line" : "exchanged-lines",
                     FindingConfidence::likely, lines.after - lines.before, 0, 0, lines.text()});
  } catch (const FormatError&) {
    // That the names say nothing has been found already.
  }
}

}  // namespace

const char* confidence_name(FindingConfidence confidence) {
  switch (confidence) {
    case FindingConfidence::possible:
      return "possible";
    case FindingConfidence::likely:
      return "likely";
    case FindingConfidence::certain:
      return "certain";
  }
  return "";
}

LintReport lint_capture(const std::vector<std::string>& paths, const CaptureOptions& options,
                        const std::function<void(std::uint64_t)>& progress) {
  if (paths.empty()) throw UsageError("no capture file was given");
  const CaptureFormat& format = capture_format_of(paths[0], options);
  LintReport report;
  std::optional<Linter> linter;
  std::unique_ptr<CaptureReader> capture;
  try {
    const std::string name = format_in_full(format.id, options);
    if (open_samples(name, paths)) {
      capture = open_capture_with_cycles(name, paths, options, [&](const PinCycle& cycle) {
        if (linter) linter->add_cycle(cycle);
      });
    } else {
      capture = open_capture(paths, options);
    }
    linter.emplace(capture->info());
    BusTransaction transaction;
    do {
      while (capture->next(transaction)) {
        linter->add(transaction);
        if (progress) progress(linter->transactions());
      }
      linter->begin_segment();
    } while (capture->next_segment());
  } catch (const FormatError& error) {
    report.findings.push_back({"not-decodable", FindingConfidence::certain, 1,
                               linter ? linter->transactions() : 0, 0, error.what()});
  }
  if (linter) {
    report.info = capture->info();
    report.transactions = linter->transactions();
    linter->report(report.info, report.findings);
    if (report.transactions == 0 && report.findings.empty())
      report.findings.push_back({"no-transactions", FindingConfidence::certain, 1, 0, 0,
                                 "not one bus transaction in the whole capture"});
    find_glitches(format.id, paths, report.findings);
  }
  find_exchanged(format.id, paths, options, report.findings);
  std::stable_sort(
      report.findings.begin(), report.findings.end(),
      [](const LintFinding& a, const LintFinding& b) { return a.confidence > b.confidence; });
  return report;
}

}  // namespace citcat
