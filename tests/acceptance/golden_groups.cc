#include "acceptance/golden_groups.h"

#include <cstring>

#include "unit/capture/shared_data.h"

namespace citcat::test {
namespace {

enum RecordKind : std::uint8_t { kInstruction = 1, kAccess = 2, kEvent = 3, kRegisters = 4 };
enum EventKind : std::uint8_t { kException = 1, kHardwareInterrupt = 2 };
enum AccessClass : std::uint8_t { kData = 0, kWalk = 1, kPort = 2 };
constexpr std::uint8_t kWrite = 1;

template <class T>
T group_field(const std::array<std::uint8_t, 40>& record, std::size_t at) {
  T value;
  std::memcpy(&value, record.data() + at, sizeof value);
  return value;
}

std::uint32_t hex(const std::string& text) {
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

}  // namespace

bool GoldenGroups::read_record() {
  if (!input_) return false;
  if (!have_record_) have_record_ = input_->read(record_) == record_.size();
  return have_record_;
}

bool GoldenGroups::next(GoldenGroup& group) {
  group.starts.clear();
  group.written.clear();
  group.ports.clear();
  group.references.clear();
  group.after.reset();
  start_open_ = false;
  bool any = false;
  while (read_record()) {
    // Records of registers carry no count: they belong to the instruction before.
    if (record_[0] != kRegisters) {
      const auto icount = group_field<std::uint64_t>(record_, 32);
      if (any && icount != group.icount) return true;
      group.icount = icount;
      any = true;
    }
    take(group);
    have_record_ = false;
  }
  return any;
}

void GoldenGroups::take(GoldenGroup& group) {
  switch (record_[0]) {
    case kInstruction: {
      GoldenStart start;
      start.cs = group_field<std::uint16_t>(record_, 2);
      start.eip = group_field<std::uint32_t>(record_, 4);
      start.linear = group_field<std::uint32_t>(record_, 8);
      start.physical = group_field<std::uint32_t>(record_, 12);
      start.bytes.assign(record_.begin() + 16, record_.begin() + 16 + record_[1]);
      group.starts.push_back(std::move(start));
      start_open_ = true;
      break;
    }
    case kAccess:
      take_access(group);
      break;
    case kEvent: {
      // Left before one iteration was done: it will start again, and counts then.
      const bool leaves = record_[1] == kException || record_[1] == kHardwareInterrupt;
      const auto rep = group_field<std::uint32_t>(record_, 12);
      if (leaves && start_open_ && rep == 0) group.starts.pop_back();
      start_open_ = false;
      break;
    }
    case kRegisters: {
      GoldenRegisters after;
      after.eflags = group_field<std::uint32_t>(record_, 4);
      for (std::size_t i = 0; i < 8; ++i)
        after.gpr[i] = group_field<std::uint32_t>(record_, 8 + 4 * i);
      group.after = after;
      break;
    }
    default:
      break;
  }
}

void GoldenGroups::take_access(GoldenGroup& group) {
  const std::uint8_t size = record_[1], kind = record_[2], what = record_[3];
  const auto physical = group_field<std::uint32_t>(record_, 8);
  const auto rep = group_field<std::uint32_t>(record_, 12);
  if (what == kPort) {
    group.ports.push_back({static_cast<std::uint16_t>(physical), size, kind == kWrite,
                           group_field<std::uint32_t>(record_, 16)});
    return;
  }
  if (what == kData) group.references.push_back({group_field<std::uint32_t>(record_, 4), rep});
  if (kind != kWrite) return;
  for (std::uint32_t i = 0; i < size; ++i) {
    group.written.push_back({physical + i, record_[16 + i]});
  }
}

std::vector<GoldenEvent> load_golden_events(const std::string& path) {
  std::vector<GoldenEvent> events;
  for (const auto& f : csv_rows(path)) {
    GoldenEvent e;
    e.icount = std::stoull(f.at(0));
    e.rep = static_cast<std::uint32_t>(std::stoul(f.at(1)));
    e.kind = f.at(2);
    e.vector = static_cast<std::uint8_t>(std::stoul(f.at(3)));
    e.error_code = hex(f.at(4));
    e.cs = static_cast<std::uint16_t>(hex(f.at(5)));
    e.eip = hex(f.at(6));
    e.cr2 = hex(f.at(7));
    e.eflags = hex(f.at(8));
    events.push_back(e);
  }
  return events;
}

std::vector<GoldenHash> load_golden_hashes(const std::string& path) {
  std::vector<GoldenHash> rows;
  for (const auto& f : csv_rows(path)) {
    const auto wide = [&](std::size_t i) { return std::stoull(f.at(i), nullptr, 16); };
    rows.push_back({std::stoull(f.at(0)), hex(f.at(1)), wide(12), wide(13), wide(14), wide(15)});
  }
  return rows;
}

void RunningHash::add(const GoldenRegisters& after, std::uint32_t next_eip) {
  constexpr std::uint64_t kPrime = 0x100000001b3, kFactor = 0x9e3779b97f4a7c15;
  // EFLAGS without RF: with the system flags alone, and with the status flags.
  constexpr std::uint32_t kSystemFlags = 0x003e7700, kAllFlags = 0x003e7fd5;
  const auto weight = [&](std::uint64_t j) { return kFactor * (2 * j + 1); };
  std::uint64_t sum = 0;
  for (std::size_t j = 0; j < 8; ++j) sum += after.gpr[j] * weight(j);
  sum += next_eip * weight(8);
  eip = (eip ^ next_eip) * kPrime;
  gpr = (gpr ^ sum) * kPrime;
  system = (system ^ (sum + (after.eflags & kSystemFlags) * weight(9))) * kPrime;
  all = (all ^ (sum + (after.eflags & kAllFlags) * weight(9))) * kPrime;
}

}  // namespace citcat::test
