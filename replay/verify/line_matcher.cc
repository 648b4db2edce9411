#include "replay/verify/line_matcher.h"

#include <algorithm>

namespace citcat {

bool LineMatcher::observe_bytes(Pending& line, const Memory& memory) {
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    if ((line.unmatched >> i & 1) == 0) continue;
    const auto byte = memory.defined_byte(line.t.address.plus32(i));
    if (byte && *byte == line.t.data[i]) line.unmatched &= ~(1u << i);
  }
  return line.unmatched == 0;
}

std::size_t LineMatcher::due(Position completed, bool in_repeat) const {
  std::size_t n = 0;
  for (; n < lines_.size(); ++n) {
    const Position at = lines_[n].t.position;
    if (at > completed || (in_repeat && at.instruction == completed.instruction)) break;
  }
  return n;
}

void LineMatcher::excuse(const Overwritten& bytes, Position now) {
  for (Pending& line : lines_) {
    if (line.t.position.instruction > now.instruction) break;
    const std::uint32_t first = bytes.address.minus32(line.t.address);
    if (first >= line.t.size || line.t.size - first < bytes.size) continue;
    for (std::uint32_t i = 0; i < bytes.size; ++i) {
      const std::uint32_t different = line.t.data[first + i] ^ (bytes.value >> 8 * i & 0xff);
      if ((different & ~(bytes.undefined >> 8 * i)) == 0) line.unmatched &= ~(1u << (first + i));
    }
  }
}

void LineMatcher::forgive(PhysAddr a) {
  const auto it = windows_.find(window_of(a));
  if (it == windows_.end()) return;
  std::deque<BusTransaction>& waiting = it->second;
  const auto first = std::find_if(waiting.begin(), waiting.end(), [&](const BusTransaction& t) {
    return overlap(a, 1, t.address, t.size);
  });
  if (first != waiting.end()) waiting.erase(first);
  if (waiting.empty()) windows_.erase(it);
}

}  // namespace citcat
