#include "capture/inspect/code_trace.h"

#include <set>
#include <utility>

namespace citcat {
namespace {

// A jump and what is fetched behind it: 16 bytes of a 386SX.
constexpr std::size_t kCodeKept = 22;
// IP, CS and FLAGS; read so many cycles before.
constexpr std::size_t kReadKept = 6, kSoonAfter = 24;

template <typename T>
void keep_last(std::vector<T>& list, std::size_t most) {
  if (list.size() > most) list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(most));
}

}  // namespace

std::uint32_t CodeTrace::place(const UnnamedCycle& cycle) const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < lines_.chain.size(); ++i)
    if (at_clock(activity_.at_begin(lines_.chain[i]), cycle.begin))
      value |= std::uint32_t{1} << (lines_.first + i);
  if (lines_.is_wide && at_clock(activity_.at_begin(lines_.low_enable), cycle.begin)) value |= 1;
  return value;
}

std::uint16_t CodeTrace::data(const UnnamedCycle& cycle) const {
  unsigned value = 0;
  for (std::size_t i = 0; i < lines_.data.size(); ++i)
    if (at_clock(activity_.at_end(lines_.data[i]), cycle.end)) value |= 1U << i;
  return static_cast<std::uint16_t>(value);
}

std::vector<RawByte> CodeTrace::bytes(const UnnamedCycle& cycle) const {
  const std::uint32_t at = place(cycle);
  const std::uint16_t lines = data(cycle);
  if (!lines_.is_wide) return {{at, lines, false}};
  // An acknowledge has its vector on D0-D7.
  if (cycle.is_acknowledge()) return {{at, lines, false}};
  const bool high = !at_clock(activity_.at_begin(lines_.high_enable), cycle.begin);
  if (at % 2 != 0) return {{at, lines, true}};
  if (!high) return {{at, lines, false}};
  return {{at, lines, false}, {at + 1, lines, true}};
}

std::vector<RawTransfer> CodeTrace::transfers() const {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  std::vector<RawTransfer> found;
  std::vector<RawByte> code, read;
  std::optional<std::uint32_t> next;
  std::size_t last_read = 0;
  for (std::size_t i = 0; i < cycles_.size(); ++i) {
    const UnnamedCycle& cycle = cycles_[i];
    if (!cycle.is_fetch() && !cycle.is_read()) continue;
    const auto moved = bytes(cycle);
    if (cycle.is_read()) {
      read.insert(read.end(), moved.begin(), moved.end());
      keep_last(read, kReadKept);
      last_read = i;
      continue;
    }
    const std::uint32_t at = moved[0].place;
    if (next && at != *next) {
      if (seen.emplace(*next, at).second)
        found.push_back({code, i - last_read <= kSoonAfter ? read : std::vector<RawByte>(), at});
      code.clear();
    }
    code.insert(code.end(), moved.begin(), moved.end());
    keep_last(code, kCodeKept);
    next = (moved.back().place + 1) & lines_.mask();
  }
  return found;
}

}  // namespace citcat
