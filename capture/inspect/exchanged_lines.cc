#include "capture/inspect/exchanged_lines.h"

#include <optional>
#include <utility>

#include "capture/inspect/code_order.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

// There are some hundred pairs to try.
constexpr std::size_t kTrialBytes = std::size_t{1} << 17;
constexpr int kMostPairs = 4;
/// Fewer fetches say nothing.
constexpr std::uint64_t kFewestFetches = 64;

using Pair = std::pair<std::size_t, std::size_t>;

class ExchangeSearch {
 public:
  ExchangeSearch(const ChannelActivity& activity, const BusMatch& match, PinAssignment& assignment)
      : activity_(activity), match_(match), assignment_(assignment) {}

  std::vector<ExchangedLines> run() {
    std::vector<ExchangedLines> found;
    CodeOrder order = decode();
    for (int i = 0; i < kMostPairs; ++i) {
      const auto better = best_pair(order);
      if (!better) break;
      exchange(better->first);
      found.push_back({match_.pins[better->first.first].pin->name,
                       match_.pins[better->first.second].pin->name, order.in_order(),
                       better->second.in_order(), better->second.fetches()});
      order = better->second;
    }
    return found;
  }

 private:
  /// A line with itself is inverted.
  void exchange(Pair pair) {
    if (pair.first == pair.second)
      assignment_.pins[pair.first].inverted = !assignment_.pins[pair.first].inverted;
    std::swap(assignment_.pins[pair.first], assignment_.pins[pair.second]);
  }

  /// As far as it can be decoded.
  CodeOrder decode() const {
    CodeOrder order;
    try {
      const auto decoder = match_.bus->make(activity_.info(), {*match_.bus, assignment_});
      std::size_t bytes = 0;
      for (const SampleBlock& block : activity_.blocks()) {
        decoder->decode(block);
        for (BusTransaction t; decoder->take(t);) order.add(t);
        bytes += block.bytes.size();
        if (bytes >= kTrialBytes) break;
      }
    } catch (const FormatError&) {
      // What was decoded before counts.
    }
    return order;
  }

  /// A line that is held at a level is neither exchanged nor inverted, though a line that fails may
  /// decode better with its level.
  bool moves(const PinChoice& pin) const {
    return pin.channel >= 0 && activity_.changes()[static_cast<std::size_t>(pin.channel)] != 0;
  }

  /// The one that helps most, if it helps much.
  std::optional<std::pair<Pair, CodeOrder>> best_pair(const CodeOrder& now) {
    std::optional<std::pair<Pair, CodeOrder>> best;
    for (std::size_t a = 0; a < assignment_.pins.size(); ++a) {
      for (std::size_t b = a; b < assignment_.pins.size(); ++b) {
        if (!moves(assignment_.pins[a]) || !moves(assignment_.pins[b])) continue;
        exchange({a, b});
        const CodeOrder order = decode();
        exchange({a, b});
        if (order.fetches() < kFewestFetches || order.in_order() * 2 < order.fetches()) continue;
        if (!best || order.score() > best->second.score()) best = {Pair{a, b}, order};
      }
    }
    if (!best || best->second.score() * 10 <= now.score() * 11) return std::nullopt;
    return best;
  }

  const ChannelActivity& activity_;
  const BusMatch& match_;
  PinAssignment& assignment_;
};

}  // namespace

std::string ExchangedLines::text() const {
  const bool inverted = first == second;
  const std::string what = inverted ? first + " looks inverted: as it is "
                                    : first + " and " + second + " look exchanged: as they are ";
  return what + std::to_string(before) + " code fetches of the beginning go on or follow a jump, " +
         (inverted ? "inverted " : "exchanged ") + std::to_string(after) + " of " +
         std::to_string(fetches);
}

std::vector<ExchangedLines> find_exchanged_lines(const ChannelActivity& activity,
                                                 const BusMatch& match, PinAssignment& assignment) {
  return ExchangeSearch(activity, match, assignment).run();
}

}  // namespace citcat
