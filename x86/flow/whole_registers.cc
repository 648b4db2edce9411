#include "x86/flow/whole_registers.h"

#include <algorithm>
#include <utility>

#include "x86/flow/flow_spans.h"

namespace citcat::flow {
namespace {

/// Bytes of the register that is the place; 0 where each byte, or flag, has a place of its own.
std::uint16_t whole_bytes(const ValueSpan& span, bool wide) {
  if (span.of != ValueSpan::Of::places || span.count != 1) return 0;
  if (span.first >= place::kSegments && span.first < place::kFpuStatus) return 2;
  if (span.first == place::kFpuControl || span.first == place::kFpuTags) return 2;
  if (span.first == place::kMxcsr) return 4;
  if (span.first >= place::kControl) return wide ? 8 : 4;
  return 0;
}

ValueSpan beginning(const ValueSpan& span, std::uint16_t count) {
  return {span.of, span.first, std::min(span.count, count)};
}
ValueSpan behind(const ValueSpan& span, std::uint16_t count) {
  const bool all = span.count == ValueSpan::kAll;
  return {span.of, static_cast<std::uint16_t>(span.first + count),
          all ? span.count : static_cast<std::uint16_t>(span.count - count)};
}

/// It makes `effect.to`: all of what was a byte of it by byte.
void join_into(std::uint16_t bytes, ValueEffect& effect) {
  for (const ValueSpan& lane : std::exchange(effect.lanes, {})) {
    if (lane == effect.to.front()) {
      effect.lanes.push_back(lane);
    } else {
      effect.whole.push_back(beginning(lane, bytes));
    }
  }
}

}  // namespace

void join_whole_registers(bool wide, std::vector<ValueEffect>& effects) {
  std::vector<ValueEffect> cleared;
  for (ValueEffect& effect : effects) {
    if (effect.to.size() != 1 || effect.lanes.empty()) continue;
    ValueSpan& to = effect.to.front();
    if (const std::uint16_t bytes = whole_bytes(to, wide)) {
      join_into(bytes, effect);
      continue;
    }
    const std::uint16_t bytes = whole_bytes(effect.lanes.front(), wide);
    if (bytes == 0 || effect.lanes.size() != 1) continue;
    if (to.count > bytes) cleared.push_back({{behind(to, bytes)}, {}, effect.whole});
    to = beginning(to, bytes);
    effect.whole.push_back(effect.lanes.front());
    effect.lanes.clear();
  }
  effects.insert(effects.end(), cleared.begin(), cleared.end());
}

}  // namespace citcat::flow
