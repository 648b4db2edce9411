#include "replay/verify/line_matcher.h"

#include <algorithm>
#include <cstring>

namespace citcat {

namespace {

/// The four bytes at `offset` of the line could be an image of EFLAGS that differs from the one in
/// memory in arithmetic flags (Intel SDM vol. 1, 3.4.3: bit 1 is always set).
bool shows_other_flags(const BusTransaction& line, std::uint32_t offset, const Memory& memory) {
  constexpr std::uint32_t kArithmetic = 0x8d5, kAlwaysSet = 2;
  const PhysAddr at = line.address.plus32(offset);
  if (!memory.is_mapped(at.page()) || !memory.is_defined(at, 4)) return false;
  std::uint32_t held = 0, shown = 0;
  std::memcpy(&held, memory.host(at), 4);
  std::memcpy(&shown, &line.data[offset], 4);
  return (held & kAlwaysSet) != 0 && ((held ^ shown) & ~kArithmetic) == 0;
}

}  // namespace

bool LineMatcher::observe_bytes(Pending& line, const Memory& memory) {
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    if ((line.unmatched >> i & 1) == 0) continue;
    const auto byte = memory.defined_byte(line.t.address.plus32(i));
    if (byte && *byte == line.t.data[i]) line.unmatched &= ~(1u << i);
  }
  if (line.unmatched == 0) return true;
  note_other_flags(line, memory);
  return false;
}

void LineMatcher::note_other_flags(Pending& line, const Memory& memory) {
  if (line.t.address.offset_in(4) != 0 || line.t.size % 4 != 0) return;
  for (std::uint32_t i = 0; i < line.t.size; i += 4) {
    const std::uint32_t bytes = line.unmatched & 0xfu << i;
    if (bytes != 0 && shows_other_flags(line.t, i, memory)) line.other_flags |= bytes;
  }
}

void LineMatcher::overwrite(PhysAddr a, std::uint32_t size, Position now) {
  for (Pending& line : lines_) {
    if (line.t.position > now) break;
    if (!overlap(a, size, line.t.address, line.t.size)) continue;
    for (std::uint32_t i = 0; i < line.t.size; ++i) {
      const bool stored = line.t.address.plus32(i).is_within32(a, size);
      if (stored) line.overwritten |= line.unmatched & line.other_flags & 1u << i;
    }
  }
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
