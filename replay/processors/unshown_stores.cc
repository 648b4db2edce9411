#include "replay/processors/unshown_stores.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "events/processors/bus_parts.h"
#include "events/processors/device_addresses.h"
#include "replay/machine/memory.h"
#include "replay/machine/observer.h"

namespace citcat {
namespace {

using PartBytes = std::array<std::uint8_t, kBusPart>;

/// Memory as the bus showed it to one processor; 0 where it never did.
BusParts<PartBytes> shown_memory(const RecordingFile& file) {
  BusParts<PartBytes> parts;
  std::vector<ProcessorShare> share;
  share.push_back({&file.recording(), file.evidence()});
  SharedBus bus(std::move(share), {});
  for (SharedEvent event; bus.next(event);) {
    const BusTransaction& t = event.t;
    if (!t.is_memory()) continue;
    for_bus_parts(t.address, t.size,
                  [&](std::uint64_t number, std::uint32_t at, std::size_t i, std::size_t n) {
                    std::memcpy(parts.find_or_make(number).data() + at, t.data.data() + i, n);
                  });
  }
  return parts;
}

/// When the bus showed some lines to their processor.
struct ShownLines {
  std::map<PhysAddr, Position> last;  ///< where it showed each line last, if it did
  Position end;                       ///< of the last transaction
  std::uint64_t clock_behind(Position store) const {
    const auto next = std::upper_bound(clocks.begin(), clocks.end(), store,
                                       [](Position at, const auto& c) { return at < c.first; });
    return next == clocks.end() ? 0 : next->second;
  }
  /// Each new position of the processor, with its clock, ascending.
  std::vector<std::pair<Position, std::uint64_t>> clocks;
  std::optional<Position> flushed;  ///< by the last WBINVD
  bool flushed_behind(Position store) const { return flushed && store < *flushed; }
};

ShownLines shown_lines(const RecordingFile& file, const std::vector<PhysAddr>& lines,
                       std::uint32_t line_bytes) {
  ShownLines shown;
  const std::unique_ptr<EvidenceReader> evidence = file.evidence();
  for (BusTransaction t; evidence->next(t);) {
    if (!t.has(kPositionKnown)) continue;
    if (shown.clocks.empty() || shown.end < t.position) {
      shown.end = t.position;
      shown.clocks.emplace_back(t.position, t.clock);
    }
    if (t.op == BusOp::flush && writes_back(t)) shown.flushed = t.position;
    const PhysAddr line = t.address.begin_of(line_bytes);
    if (t.is_memory() && std::binary_search(lines.begin(), lines.end(), line))
      shown.last[line] = t.position;
  }
  return shown;
}

/// Finds the first store to each of some lines after the bus showed the line last.
class FirstStores final : public Observer {
 public:
  FirstStores(const std::vector<PhysAddr>& lines, std::uint32_t line_bytes, const ShownLines& shown)
      : lines_(lines), line_bytes_(line_bytes), shown_(shown) {}

  Interest interest() const override { return Interest::changes(); }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position now) override {
    const PhysAddr last = a.plus32(static_cast<std::uint32_t>(bytes.size()) - 1);
    for (const PhysAddr line : {a.begin_of(line_bytes_), last.begin_of(line_bytes_)}) {
      if (!std::binary_search(lines_.begin(), lines_.end(), line)) continue;
      const auto shown = shown_.last.find(line);
      if (shown == shown_.last.end() || shown->second <= now) found_.emplace(line, now);
    }
  }
  const std::map<PhysAddr, Position>& found() const { return found_; }

 private:
  const std::vector<PhysAddr>& lines_;
  std::uint32_t line_bytes_;
  const ShownLines& shown_;
  std::map<PhysAddr, Position> found_;
};

BusContradiction unshown_store(std::size_t processor, PhysAddr line, Position at,
                               const ShownLines& shown) {
  BusContradiction contradiction;
  contradiction.processor = static_cast<std::uint8_t>(processor);
  contradiction.t.index = kNoTransaction;
  contradiction.t.flags = kPositionKnown;
  contradiction.t.position = at;
  contradiction.t.clock = shown.clock_behind(at);
  contradiction.t.address = line;
  contradiction.reason =
      shown.flushed_behind(at)
          ? "a processor stores to a line in its cache, and WBINVD does not write the line back"
          : "a processor stores to a line in its cache, and the bus does not show that it made the "
            "line its own (an invalidation is missing, or a fill for a store)";
  char digits[20];
  std::snprintf(digits, sizeof digits, "%08llx", static_cast<unsigned long long>(line.value));
  contradiction.found = "line " + std::string(digits);
  return contradiction;
}

}  // namespace

std::vector<PhysAddr> lines_changed_in_cache(const RecordingFile& file, const Machine& machine) {
  const Recording& recording = file.recording();
  std::vector<PhysAddr> lines;
  if (recording.bus.form != CacheForm::write_back) return lines;
  const std::uint32_t line_bytes = shared_line_bytes(recording);
  const Memory& at_end = machine.memory();
  const BusParts<PartBytes> shown = shown_memory(file);
  constexpr PartBytes kNever{};
  for (const FrameNumber frame : at_end.changed_frames()) {
    const PhysAddr page = at_end.captured(PhysAddr{frame * kPageSize});
    if (is_device(page, recording.initial.ram_bytes)) continue;
    for (std::uint32_t i = 0; i < kPageSize; i += line_bytes) {
      const PhysAddr line = page.plus32(i);
      const PartBytes* const part = shown.find(bus_part(line));
      const std::uint8_t* const last =
          (part == nullptr ? kNever : *part).data() + line.offset_in(kBusPart);
      if (std::memcmp(last, at_end.host(PhysAddr{frame * kPageSize + i}), line_bytes) != 0)
        lines.push_back(line);
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

void check_changed_lines(const MachineFile& machine, const CrossCheck& check, std::size_t processor,
                         const std::vector<PhysAddr>& changed, const ComparisonPolicy& policy,
                         CrossCheckResult& result) {
  if (!machine.info().shows_sharing) return;
  std::vector<PhysAddr> lines;
  std::copy_if(changed.begin(), changed.end(), std::back_inserter(lines),
               [&](PhysAddr line) { return check.owner(line) != processor; });
  if (lines.empty()) return;
  const RecordingFile file = machine.open(processor);
  const std::uint32_t line_bytes = shared_line_bytes(file.recording());
  const ShownLines shown = shown_lines(file, lines, line_bytes);
  FirstStores stores(lines, line_bytes, shown);
  SessionOptions options;
  options.policy = policy;
  (void)ReplaySession(file, &stores, options).run_to(shown.end);
  for (const auto& [line, at] : stores.found()) {
    ++result.contradictions;
    if (!result.first) result.first = unshown_store(processor, line, at, shown);
  }
}

}  // namespace citcat
