#include "capture/inspect/activity_match.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/channel_map.h"
#include "capture/inspect/address_lines.h"
#include "capture/inspect/bus_cycles_8088.h"
#include "capture/inspect/exchanged_lines.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::string_view kBus = "8088-max";
constexpr std::size_t kDataLines = 8;
constexpr std::size_t kAddressLines = 20;

[[noreturn]] void give_up(const SampleInfo& info, const std::string& what) {
  throw FormatError(info.name, 0,
                    "expected channels that move as the pins of an 8088 do, found " + what +
                        " (name them with --channels, see "
                        "docs/channel-maps.md)");
}

class Matching {
 public:
  explicit Matching(ChannelActivity& activity) : activity_(activity) { out_.bus = kBus; }

  ActivityMatch run() {
    find_clock_and_status();
    find_address();
    if (const auto problem = decoding_problem())
      give_up(activity_.info(), "what looks like them but does not decode: " + *problem);
    find_queue_status();
    settle_doubtful_lines();
    find_interrupt_request();
    for (const PinDescription& pin : find_bus(kBus)->pins())
      if (!is_found(pin.name)) out_.missing.push_back(pin.name);
    return std::move(out_);
  }

 private:
  void add(const std::string& pin, std::size_t channel, const std::string& reason) {
    out_.pins.push_back({pin, channel, reason});
    used_.insert(channel);
  }
  bool is_found(const std::string& pin) const {
    return std::any_of(out_.pins.begin(), out_.pins.end(),
                       [&](const ActivityMatch::Pin& p) { return p.pin == pin; });
  }
  std::vector<std::size_t> free_channels() const {
    std::vector<std::size_t> channels;
    for (std::size_t c = 0; c < activity_.channels(); ++c)
      if (used_.count(c) == 0 && activity_.changes()[c] > 0) channels.push_back(c);
    return channels;
  }

  /// The clock is one of the channels that change most; with the right one there is a status.
  void find_clock_and_status() {
    constexpr std::size_t kTried = 4;
    std::vector<std::size_t> channels = free_channels();
    std::stable_sort(channels.begin(), channels.end(), [&](std::size_t a, std::size_t b) {
      return activity_.changes()[a] > activity_.changes()[b];
    });
    for (std::size_t i = 0; i < std::min(kTried, channels.size()); ++i) {
      activity_.set_clock(channels[i]);
      const auto status = find_status_lines(activity_, channels[i]);
      if (!status) continue;
      add("CLK", channels[i], "changes all the time, and what others do follows it");
      for (std::size_t n = 0; n < status->lines.size(); ++n)
        add("S" + std::to_string(n), status->lines[n],
            "goes low and back with the others of S0-S2");
      if (!status->sure)
        out_.doubts.push_back(
            "no interrupt distinguishes S0 from S1: chosen so that there are more reads than "
            "writes");
      cycles_ = cycles_of(activity_, status->lines);
      return;
    }
    give_up(activity_.info(), "no clock with three lines that show bus cycles");
  }

  void find_address() {
    const std::vector<std::size_t> candidates = free_channels();
    AddressMatch match = find_address_lines(activity_, cycles_, candidates);
    // With eight probes for addresses, the line that wraps least often may not be seen to.
    if (match.in_order + 1 == kDataLines && candidates.size() == kDataLines) {
      const auto is_left = [&](std::size_t channel) {
        return std::none_of(match.lines.begin(), match.lines.end(),
                            [&](const auto& line) { return line && line->channel == channel; });
      };
      const auto last = std::find_if(candidates.begin(), candidates.end(), is_left);
      match.lines[match.in_order++] = {*last, "the only channel that is left"};
    }
    if (match.in_order < kDataLines)
      give_up(activity_.info(), "only " + std::to_string(match.in_order) +
                                    " lines that count as code is fetched, of AD0-AD7 (a longer "
                                    "capture may show more)");
    for (std::size_t bit = 0; bit < kAddressLines; ++bit) {
      if (!match.lines[bit]) continue;
      add((bit < kDataLines ? "AD" : "A") + std::to_string(bit), match.lines[bit]->channel,
          match.lines[bit]->reason);
    }
    out_.doubts.insert(out_.doubts.end(), match.doubts.begin(), match.doubts.end());
    for (const std::size_t bit : match.by_order) by_order_.push_back("A" + std::to_string(bit));
  }

  /// Lines that nothing distinguishes are taken in the order of their channels, unless no queue
  /// fits what is fetched then. A wrong line makes a wrong trace; import completes addresses
  /// without it.
  void settle_doubtful_lines() {
    if (by_order_.empty()) return;
    std::string doubt;
    for (const std::string& name : by_order_) doubt += (doubt.empty() ? "" : ", ") + name;
    doubt += ": the capture shows only that they are address lines; ";
    const std::vector<ActivityMatch::Pin> with_them = out_.pins;
    const bool fits = is_found("QS0");
    if (!fits) {
      std::erase_if(out_.pins, [&](const ActivityMatch::Pin& pin) {
        return std::find(by_order_.begin(), by_order_.end(), pin.pin) != by_order_.end();
      });
      find_queue_status();
    }
    if (!fits && is_found("QS0")) {
      doubt += "left out, because code is not fetched in their order";
    } else {
      out_.pins = with_them;
      doubt += "assigned in the order of their channels";
    }
    out_.doubts.push_back(doubt);
  }

  /// What was found so far, and `more`, as the decoder wants it.
  PinAssignment assignment(const std::vector<std::pair<std::string, std::size_t>>& more) const {
    ChannelMap map;
    map.bus = kBus;
    const auto name = [](std::size_t channel) { return std::to_string(channel); };
    for (const PinDescription& pin : find_bus(kBus)->pins()) map.pins[pin.name] = {};
    SampleInfo unnamed = activity_.info();
    for (std::size_t c = 0; c < unnamed.channels.size(); ++c) unnamed.channels[c] = name(c);
    for (const ActivityMatch::Pin& pin : out_.pins) map.pins[pin.pin] = {name(pin.channel), false};
    for (const auto& [pin, channel] : more) map.pins[pin] = {name(channel), false};
    return assign_pins(match_bus(*find_bus(kBus), unnamed, map), map);
  }

  struct Trial {
    std::size_t instructions = 0;
    std::optional<std::string> problem;
  };
  Trial decode(const std::vector<std::pair<std::string, std::size_t>>& more,
               std::size_t most_bytes) const {
    const BusDescription& bus = *find_bus(kBus);
    const PinAssignment pins = assignment(more);
    const auto decoder = bus.make(activity_.info(), {bus, pins});
    Trial trial;
    std::size_t bytes = 0;
    try {
      for (const SampleBlock& block : activity_.blocks()) {
        decoder->decode(block);
        for (BusTransaction t; decoder->take(t);)
          trial.instructions += t.op == BusOp::instruction_start ? 1 : 0;
        bytes += block.bytes.size();
        if (bytes >= most_bytes) break;
      }
    } catch (const FormatError& error) {
      trial.problem = error.what();
    }
    return trial;
  }
  std::optional<std::string> decoding_problem() const {
    return decode({}, ~std::size_t{0}).problem;
  }

  /// The queue is reported on two lines; with any other two the decoder finds code taken from the
  /// queue that was not fetched.
  void find_queue_status() {
    constexpr std::size_t kTrialBytes = std::size_t{1} << 20, kCyclesPerReport = 16;
    std::vector<std::size_t> channels;
    for (const std::size_t c : free_channels())
      if (activity_.changes()[c] >= cycles_.size() / kCyclesPerReport) channels.push_back(c);
    std::size_t most = 0;
    std::pair<std::size_t, std::size_t> best;
    for (const std::size_t qs0 : channels) {
      for (const std::size_t qs1 : channels) {
        if (qs0 == qs1) continue;
        const Trial trial = decode({{"QS0", qs0}, {"QS1", qs1}}, kTrialBytes);
        if (trial.problem || trial.instructions <= most) continue;
        most = trial.instructions;
        best = {qs0, qs1};
      }
    }
    if (most == 0) return;
    const std::string reason = "with them " + std::to_string(most) +
                               " instructions of the beginning are taken from the queue in order";
    add("QS0", best.first, reason);
    add("QS1", best.second, reason);
  }

  /// INTR is high whenever an interrupt is acknowledged, and seldom otherwise.
  void find_interrupt_request() {
    std::optional<std::size_t> best;
    std::size_t fewest = cycles_.size() / 4;
    std::size_t acknowledges = 0;
    for (std::size_t i = 1; i < cycles_.size(); ++i)
      acknowledges += cycles_[i].is_acknowledge() && cycles_[i - 1].is_acknowledge() ? 1 : 0;
    for (const std::size_t c : free_channels()) {
      const ClockBits& bits = activity_.at_begin(c);
      std::size_t high = 0, at_acknowledge = 0;
      for (std::size_t i = 0; i + 1 < cycles_.size(); ++i) {
        const bool level = at_clock(bits, cycles_[i].begin);
        high += level ? 1 : 0;
        at_acknowledge +=
            level && cycles_[i].is_acknowledge() && cycles_[i + 1].is_acknowledge() ? 1 : 0;
      }
      if (acknowledges < 2 || at_acknowledge < acknowledges || high >= fewest) continue;
      fewest = high;
      best = c;
    }
    if (best) add("INTR", *best, "high at each interrupt acknowledge and seldom else");
  }

  ChannelActivity& activity_;
  std::vector<UnnamedCycle> cycles_;
  std::set<std::size_t> used_;
  std::vector<std::string> by_order_;  ///< address lines that nothing distinguishes
  ActivityMatch out_;
};

/// The bus whose pins the channels are named for, if it is not the one that is known by its motion.
std::optional<BusMatch> other_bus(const SampleInfo& info, CpuModel cpu) {
  try {
    BusMatch match = choose_bus(info, {}, cpu);
    if (match.bus->id != kBus) return match;
  } catch (const FormatError&) {
    // The names say nothing.
  }
  return std::nullopt;
}

ActivityMatch match_by_names(const ChannelActivity& activity, const BusMatch& match) {
  ActivityMatch out;
  out.bus = match.bus->id;
  PinAssignment assignment = assign_pins(match, {});
  const auto exchanged =
      find_exchanged_lines(activity.info(), activity.blocks(), match, assignment);
  for (std::size_t i = 0; i < match.pins.size(); ++i) {
    const std::string& pin = match.pins[i].pin->name;
    if (assignment.pins[i].channel < 0) {
      out.missing.push_back(pin);
      continue;
    }
    std::string reason = "by its name";
    for (const ExchangedLines& lines : exchanged)
      if (lines.first == pin || lines.second == pin) reason = lines.text();
    out.pins.push_back({pin, static_cast<std::size_t>(assignment.pins[i].channel), reason});
  }
  if (exchanged.empty())
    out.doubts.push_back(
        "all pins are taken by the names of their channels: no two were found after whose exchange "
        "code is fetched in a better order");
  return out;
}

}  // namespace

ActivityMatch match_by_activity(SampleSource& source, CpuModel cpu) {
  ChannelActivity activity(source);
  const auto other = other_bus(activity.info(), cpu);
  return other ? match_by_names(activity, *other) : Matching(activity).run();
}

}  // namespace citcat
