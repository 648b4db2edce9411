// Writes of other bus masters, and of instructions that did not complete.

#include <algorithm>
#include <utility>

#include "replay/slice/slice_walk.h"

namespace citcat {

void SliceWalk::external(const SliceLog& log, const LogEntry& entry) {
  const LoggedAccess& written = log.accesses(entry).front();
  SliceInput input;
  input.kind = SliceInput::Kind::dma;
  input.way = SliceWay::control;
  input.position = entry.first;
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < entry.count; ++i) {
    const PhysAddr a = written.physical.plus32(i);
    const std::uint8_t way = live_.memory(a);
    if (way == 0) continue;
    if (end == 0) input.address = a;
    end = i + 1;
    input.way = std::min(input.way, static_cast<SliceWay>(way));
    live_.forget_memory(a);
  }
  if (end == 0) return;
  input.size = written.physical.plus32(end).minus32(input.address);
  if (entry.number < recording_.external_writes.size()) {
    input.transaction = recording_.external_writes[entry.number].transaction;
  }
  slice_.inputs.push_back(std::move(input));
}

void SliceWalk::unfinished(const SliceLog& log, const LogEntry& entry) {
  for (const LoggedAccess& a : log.accesses(entry)) {
    for (std::uint32_t i = 0; i < a.size; ++i) {
      const PhysAddr byte = a.physical.plus32(i);
      const std::uint8_t way = live_.memory(byte);
      if (way == 0) continue;
      live_.forget_memory(byte);
      SliceInput input;
      input.kind = SliceInput::Kind::unfinished;
      input.way = static_cast<SliceWay>(way);
      input.address = byte;
      input.position = entry.first;
      slice_.inputs.push_back(std::move(input));
    }
  }
}

}  // namespace citcat
