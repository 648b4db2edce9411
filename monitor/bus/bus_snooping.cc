// Several processors on one bus: each one's caches see what the others do there, by the MESI
// protocol (Intel SDM vol. 3, 11.4). The shadow is common to all of them: no other master can have
// changed a line that one of them holds modified.

#include <algorithm>

#include "monitor/bus/bus_model.h"

namespace citcat::monitor {

/// The others see a line on the bus, which the processor takes for itself alone or not. Returns
/// whether one of them keeps a copy.
bool BusModel::ask_others(std::uint64_t number, bool takes) {
  bool kept = false;
  for (BusModel* const other : others_) kept |= other->give(number, takes);
  return kept;
}

/// Another processor is about to have the line. What is modified here is written back first.
bool BusModel::give(std::uint64_t number, bool takes) {
  if (model_ == CacheModel::none) return false;
  CacheSet& set = set_in(data_, number);
  const unsigned data = set.find(number), code = set_in(code_, number).find(number);
  if (data == kWays && code == kWays) return false;
  if (data < kWays && set.ways[data].dirty) {
    const unsigned driver = sink_.selected();
    sink_.select(number_);
    write_back(number, kSnoopWriteBack);
    sink_.select(driver);
    set.ways[data].dirty = false;
  }
  if (takes) {
    drop(data_, number);
    drop(code_, number);
    return false;
  }
  if (data < kWays) set.ways[data].shared = true;
  return true;
}

/// A line that is held is about to be changed: nobody else keeps it.
void BusModel::make_own(std::uint64_t number, unsigned way) {
  bool& shared = set_in(data_, number).ways[way].shared;
  if (others_.empty() || !writes_back() || !shared) return;
  if (shows_sharing()) sink_.invalidate(number * line_bytes(), with_lock(0));
  (void)ask_others(number, true);
  shared = false;
}

/// A write on the bus: others' caches keep nothing of it, nor does what they have fetched ahead.
void BusModel::take_from_others(PhysicalAddress address, std::uint32_t size) {
  for (BusModel* const other : others_) {
    const PhysicalAddress dword = other->fetched_dword_;
    if (dword - address < size || address - dword < 4) other->fetched_dword_ = kNoLine;
  }
  if (!cacheable(address, size)) return;
  for (std::uint64_t number = address / line_bytes(); number <= (address + size - 1) / line_bytes();
       ++number)
    (void)ask_others(number, true);
}

/// With several processors: RAM holds `bytes`, which none of them wrote. A device did, and the bus
/// shows it.
void BusModel::show_other_master(PhysicalAddress address, std::span<const std::uint8_t> bytes) {
  if (others_.empty() || !memory_.is_ram(address, static_cast<std::uint32_t>(bytes.size()))) return;
  const std::uint8_t* const known = memory_.shadow(address);
  const unsigned driver = sink_.selected();
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t end = at;
    while (end < bytes.size() && bytes[end] != known[end]) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    const PhysicalAddress begin = address + at;
    const auto changed = bytes.subspan(at, end - at);
    sink_.select(kOtherMaster);
    sink_.single(RecordType::data_write, begin, changed, 0);
    std::copy(changed.begin(), changed.end(), memory_.shadow(begin));
    at = end;
  }
  sink_.select(driver);
}

}  // namespace citcat::monitor
