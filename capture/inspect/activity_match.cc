#include "capture/inspect/activity_match.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/channel_map.h"
#include "capture/inspect/address_lines.h"
#include "capture/inspect/channel_activity.h"
#include "capture/inspect/code_order.h"
#include "capture/inspect/exchanged_lines.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::string_view kUsualBus = "8088-max";

/// A bus, and how its pins are found.
struct BusPlan {
  std::string_view bus;
  std::optional<ControlMatch> (*find_controls)(ChannelActivity& activity);
  const char* what_is_missing;
  LineShape shape;
  bool has_queue_status = false;
};

constexpr LineShape kWideShared{.data_lines = 16, .first = 1};
constexpr LineShape kLines286{
    .data_lines = 16, .first = 1, .end = 24, .shares_data = false, .has_status = false};
constexpr LineShape kLines386{.data_lines = 16,
                              .first = 1,
                              .end = 26,
                              .shares_data = false,
                              .has_status = false,
                              .has_low_line = false};
constexpr const char* kNoStatus = "no clock with three lines that show bus cycles";
constexpr const char* kNoStrobes = "no ALE with two lines that are low in turn";
constexpr const char* kNoReady = "no lines that begin and end bus cycles, as READY# does";

const BusPlan kPlans[] = {
    {kUsualBus, find_controls_max, kNoStatus, {}, true},
    {"8086-max", find_controls_max, kNoStatus, kWideShared, true},
    {"8088-min", find_controls_8088_min, kNoStrobes, {}},
    {"8086-min", find_controls_8086_min, kNoStrobes, kWideShared},
    {"80286", find_controls_286, kNoReady, kLines286},
    {"386sx", find_controls_386sx, kNoReady, kLines386},
};

class Matching {
 public:
  Matching(ChannelActivity& activity, const BusPlan& plan)
      : activity_(activity), plan_(plan), bus_(*find_bus(plan.bus)) {
    out_.bus = plan.bus;
  }

  /// Whether all pins that the bus needs were found, and decode. Else problem() says what is not.
  bool run() {
    auto controls = plan_.find_controls(activity_);
    if (!controls) {
      problem_ = plan_.what_is_missing;
      return false;
    }
    progress_ = 1;
    for (const ControlMatch::Pin& pin : controls->pins) add(pin.pin, pin.channel, pin.reason);
    out_.doubts = controls->doubts;
    cycles_ = std::move(controls->cycles);
    find_address();
    if (!problem_.empty()) return false;
    for (const PinDescription& pin : bus_.pins())
      if (pin.required && !is_found(pin.name)) problem_ = "no channel that moves as " + pin.name;
    if (!problem_.empty()) return false;
    progress_ = 2;
    if (const auto problem = decoding_problem()) {
      problem_ = "what looks like them but does not decode: " + *problem;
      return false;
    }
    if (plan_.has_queue_status) find_queue_status();
    settle_doubtful_lines();
    find_interrupt_request();
    for (const PinDescription& pin : bus_.pins())
      if (!is_found(pin.name)) out_.missing.push_back(pin.name);
    return true;
  }

  const std::string& problem() const { return problem_; }
  int progress() const { return progress_; }
  /// How well jumps lead where code is fetched.
  const CodeOrder& order() const { return order_; }
  ActivityMatch take() { return std::move(out_); }

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

  void find_address() {
    const std::vector<std::size_t> candidates = free_channels();
    AddressMatch match = find_address_lines(activity_, cycles_, candidates, plan_.shape);
    const std::size_t data_lines = plan_.shape.data_lines;
    // With eight probes for addresses, the line that wraps least often may not be seen to.
    if (!plan_.shape.is_wide() && match.in_order + 1 == data_lines &&
        candidates.size() == data_lines) {
      const auto is_left = [&](std::size_t channel) {
        return std::none_of(match.lines.begin(), match.lines.end(),
                            [&](const auto& line) { return line && line->channel == channel; });
      };
      const auto last = std::find_if(candidates.begin(), candidates.end(), is_left);
      match.lines[match.in_order] = {*last, "the only channel that is left"};
      match.problem.clear();
    }
    if (!match.problem.empty()) {
      problem_ = match.problem;
      return;
    }
    add_lines(match);
    out_.doubts.insert(out_.doubts.end(), match.doubts.begin(), match.doubts.end());
    for (const std::size_t bit : match.by_order) by_order_.push_back("A" + std::to_string(bit));
  }

  void add_lines(const AddressMatch& match) {
    for (std::size_t bit = 0; bit < match.lines.size(); ++bit) {
      if (!match.lines[bit]) continue;
      const bool shared = plan_.shape.shares_data && bit < plan_.shape.data_lines;
      add((shared ? "AD" : "A") + std::to_string(bit), match.lines[bit]->channel,
          match.lines[bit]->reason);
    }
    for (std::size_t bit = 0; bit < match.data.size(); ++bit)
      if (match.data[bit])
        add("D" + std::to_string(bit), match.data[bit]->channel, match.data[bit]->reason);
    if (match.low_enable) add("BLE", match.low_enable->channel, match.low_enable->reason);
    if (match.high_enable) add("BHE", match.high_enable->channel, match.high_enable->reason);
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
    map.bus = plan_.bus;
    const auto name = [](std::size_t channel) { return std::to_string(channel); };
    for (const PinDescription& pin : bus_.pins()) map.pins[pin.name] = {};
    SampleInfo unnamed = activity_.info();
    for (std::size_t c = 0; c < unnamed.channels.size(); ++c) unnamed.channels[c] = name(c);
    for (const ActivityMatch::Pin& pin : out_.pins) map.pins[pin.pin] = {name(pin.channel), false};
    for (const auto& [pin, channel] : more) map.pins[pin] = {name(channel), false};
    return assign_pins(match_bus(bus_, unnamed, map), map);
  }

  struct Trial {
    std::size_t instructions = 0;
    std::optional<std::string> problem;
    CodeOrder order;
  };
  Trial decode(const std::vector<std::pair<std::string, std::size_t>>& more,
               std::size_t most_bytes) const {
    Trial trial;
    std::size_t bytes = 0;
    try {
      const PinAssignment pins = assignment(more);
      const auto decoder = bus_.make(activity_.info(), {bus_, pins});
      for (const SampleBlock& block : activity_.blocks()) {
        decoder->decode(block);
        for (BusTransaction t; decoder->take(t);) {
          trial.instructions += t.op == BusOp::instruction_start ? 1 : 0;
          trial.order.add(t);
        }
        bytes += block.bytes.size();
        if (bytes >= most_bytes) break;
      }
    } catch (const FormatError& error) {
      trial.problem = error.what();
    }
    return trial;
  }
  std::optional<std::string> decoding_problem() {
    Trial trial = decode({}, ~std::size_t{0});
    order_ = trial.order;
    return trial.problem;
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
    const auto& pins = bus_.pins();
    if (std::none_of(pins.begin(), pins.end(), [](const auto& pin) { return pin.name == "INTR"; }))
      return;
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
    if (best) add("INTR", *best, "high at each interrupt acknowledge and seldom otherwise");
  }

  ChannelActivity& activity_;
  const BusPlan& plan_;
  const BusDescription& bus_;
  std::string problem_;
  int progress_ = 0;  ///< how far it went
  CodeOrder order_;
  std::vector<UnnamedCycle> cycles_;
  std::set<std::size_t> used_;
  std::vector<std::string> by_order_;  ///< address lines that nothing distinguishes
  ActivityMatch out_;
};

/// The bus whose pins the channels are named for, if it is not the one that is known by its motion.
std::optional<BusMatch> other_bus(const SampleInfo& info, CpuModel cpu) {
  try {
    BusMatch match = choose_bus(info, {}, cpu);
    if (match.bus->id != kUsualBus) return match;
  } catch (const FormatError&) {
    // The names say nothing.
  }
  return std::nullopt;
}

ActivityMatch match_by_names(const ChannelActivity& activity, const BusMatch& match) {
  ActivityMatch out;
  out.bus = match.bus->id;
  PinAssignment assignment = assign_pins(match, {});
  const auto exchanged = find_exchanged_lines(activity, match, assignment);
  for (std::size_t i = 0; i < match.pins.size(); ++i) {
    const std::string& pin = match.pins[i].pin->name;
    if (assignment.pins[i].channel < 0) {
      out.missing.push_back(pin);
      continue;
    }
    std::string reason = "by its name";
    for (const ExchangedLines& lines : exchanged)
      if (lines.first == pin || lines.second == pin) reason = lines.text();
    out.pins.push_back({pin, static_cast<std::size_t>(assignment.pins[i].channel), reason,
                        assignment.pins[i].inverted});
  }
  if (exchanged.empty())
    out.doubts.push_back(
        "all pins are taken by the names of their channels: no exchange of two channels puts code "
        "fetches into a better order");
  return out;
}

}  // namespace

ActivityMatch match_by_activity(SampleSource& source, CpuModel cpu) {
  ChannelActivity activity(source);
  if (const auto other = other_bus(activity.info(), cpu)) return match_by_names(activity, *other);
  std::optional<ActivityMatch> best;
  std::uint64_t most = 0;
  std::string problem;
  int progress = -1;
  for (const BusPlan& plan : kPlans) {
    if (is_known(cpu) && !find_bus(plan.bus)->is_of(cpu)) continue;
    Matching matching(activity, plan);
    if (!matching.run()) {
      if (matching.progress() <= progress) continue;
      progress = matching.progress();
      problem = matching.problem();
      continue;
    }
    const CodeOrder& order = matching.order();
    if (!best || order.led_to() > most) best = matching.take();
    most = std::max(most, order.led_to());
    // On a wrong bus they do so by chance.
    if (order.led_to() >= 4 && order.led_to() * 5 >= order.fetches() - order.going_on()) break;
  }
  if (best) return std::move(*best);
  throw FormatError(activity.info().name, 0,
                    "expected channels that move as the pins of " +
                        (is_known(cpu) ? "this processor" : std::string("an 8088")) +
                        " do, found " + problem +
                        " (name them with --channels, see docs/channel-maps.md)");
}

}  // namespace citcat
