#include "replay/diagnose/processors/data_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "events/processors/apic_receivers.h"

namespace citcat {
namespace {

std::string bytes_text(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

class DataCauses {
 public:
  DataCauses(const BusTrouble& trouble, const BusNeighbourhood& near,
             std::span<const std::vector<ReplayedAccess>> accesses, std::uint32_t line_bytes)
      : trouble_(trouble),
        events_(near.events),
        near_(near),
        accesses_(accesses),
        line_bytes_(line_bytes) {}

  std::vector<MachineCause> find() {
    if (!trouble_.is_contradiction) return {};
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const ShownEvent& its = events_[i];
      if (its.event.note) {
        lost_command(i);
      } else if (is_trouble(its) && its.event.t.is_memory() &&
                 its.event.t.op != BusOp::data_write) {
        captured_read(its);
        lost_write_back(i);
      }
    }
    return std::move(found_);
  }

 private:
  bool is_trouble(const ShownEvent& its) const {
    return its.clock == trouble_.clock && its.event.processor == trouble_.processor &&
           its.event.t.address == trouble_.address;
  }
  /// The position that the bus shows of a processor last before an event, or first behind it.
  std::optional<Position> shown_before(std::size_t p, std::size_t i) const {
    while (i-- > 0) {
      if (shows(p, events_[i].event)) return events_[i].event.t.position;
    }
    return std::nullopt;
  }
  std::optional<Position> shown_behind(std::size_t p, std::size_t i) const {
    while (++i < events_.size()) {
      if (shows(p, events_[i].event)) return events_[i].event.t.position;
    }
    return std::nullopt;
  }
  /// Where something that a processor did at `position` belongs among the events: not behind the
  /// event `end`, nor behind what the processor does next. 0 if the processor was not seen before.
  std::size_t place_of(std::size_t p, Position position, std::size_t end) const {
    bool was_seen = false;
    for (std::size_t i = 0; i < end; ++i) {
      if (!shows(p, events_[i].event)) continue;
      if (position < events_[i].event.t.position) return was_seen ? i : 0;
      was_seen = true;
    }
    return was_seen ? end : 0;
  }
  static bool shows(std::size_t p, const SharedEvent& event) {
    return !event.note && event.processor == p && event.t.has(kPositionKnown);
  }

  void captured_read(const ShownEvent& read);
  void lost_write_back(std::size_t i);
  void lost_write_back_by(std::uint8_t p, std::size_t fill, const std::vector<SharedEvent>& parts);
  void lost_command(std::size_t i);

  const BusTrouble& trouble_;
  const std::vector<ShownEvent>& events_;
  const BusNeighbourhood& near_;
  std::span<const std::vector<ReplayedAccess>> accesses_;
  std::uint32_t line_bytes_;
  std::vector<MachineCause> found_;
};

/// It read what was written there last.
void DataCauses::captured_read(const ShownEvent& read) {
  const BusTransaction& t = read.event.t;
  std::array<std::uint8_t, kMaxTransactionBytes> right = t.data;
  int bits = 0;
  std::size_t first = t.size, end = 0;
  for (std::size_t i = 0; i < t.size && i < near_.left.size(); ++i) {
    right[i] = near_.left[i].value_or(t.data[i]);
    if (right[i] == t.data[i]) continue;
    bits += std::popcount(static_cast<unsigned>(right[i] ^ t.data[i]));
    first = std::min(first, i);
    end = i + 1;
  }
  if (bits == 0) return;
  MachineCause cause;
  cause.kind = MachineCauseKind::captured_read;
  cause.change.kind = BusChange::Kind::read;
  cause.change.what = read.place;
  cause.change.bytes = right;
  cause.processor = read.event.processor;
  cause.transaction = t.index;
  if (t.has(kPositionKnown)) cause.position = t.position;
  cause.address = t.address.plus32(static_cast<std::uint32_t>(first));
  cause.text = fmt::format(
      "transaction {} of processor {} read {} at {:08x}, as it was written last, and was captured "
      "as {}",
      t.index, cause.processor, bytes_text(std::span(right).subspan(first, end - first)),
      cause.address.value, bytes_text(t.bytes().subspan(first, end - first)));
  // Wrong in one bit is a fault of the probe; in many, the write before it is more likely missing.
  cause.price = bits == 1 ? 0.93 : 1.6;
  found_.push_back(std::move(cause));
}

/// A line was filled with what a processor had in its cache.
void DataCauses::lost_write_back(std::size_t i) {
  const SharedEvent& read = events_[i].event;
  if (line_bytes_ == 0 || !read.t.has(kLine)) return;
  const PhysAddr line = read.t.address.begin_of(line_bytes_);
  const auto is_of_fill = [&](const SharedEvent& event) {
    return !event.note && event.processor == read.processor && event.t.op == read.t.op &&
           event.t.has(kLine) && event.t.address.begin_of(line_bytes_) == line &&
           event.t.position == read.t.position;
  };
  std::size_t begin = i, end = i + 1;
  while (begin > 0 && is_of_fill(events_[begin - 1].event)) --begin;
  while (end < events_.size() && is_of_fill(events_[end].event)) ++end;
  std::vector<SharedEvent> parts;
  std::uint32_t size = 0;
  for (std::size_t k = begin; k < end; ++k) {
    parts.push_back(events_[k].event);
    size += events_[k].event.t.size;
  }
  if (size != line_bytes_ || begin == 0) return;
  for (std::size_t p = 0; p < accesses_.size(); ++p) {
    lost_write_back_by(static_cast<std::uint8_t>(p), begin, parts);
  }
}

void DataCauses::lost_write_back_by(std::uint8_t p, std::size_t fill,
                                    const std::vector<SharedEvent>& parts) {
  const PhysAddr line = parts.front().t.address.begin_of(line_bytes_);
  const std::optional<Position> before = shown_before(p, fill);
  std::optional<Position> behind = shown_behind(p, fill - 1);
  if (!before) return;
  // Its replay says up to where it stored to the line.
  std::optional<Position> stored;
  for (const ReplayedAccess& a : accesses_[p]) {
    if (a.op != BusOp::data_write || (behind && *behind < a.position)) continue;
    if (overlap(line, line_bytes_, a.address, a.size)) stored = a.position;
  }
  std::vector<Position> places;
  const auto add_place = [&](Position place) {
    if (place < *before || (behind && *behind < place)) return;
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  };
  if (stored) add_place({stored->instruction + 1, 0});
  if (behind) add_place(*behind);
  add_place(*before);
  MachineCause cause;
  cause.kind = MachineCauseKind::missing_write_back;
  cause.change.kind = BusChange::Kind::add;
  cause.change.what = events_[fill - 1].place;
  cause.processor = p;
  cause.address = line;
  cause.price = p == trouble_.processor ? 1 : 0.92;
  for (const Position place : places) {
    cause.position = cause.change.position = place;
    cause.change.added.clear();
    for (const SharedEvent& part : parts) {
      SharedEvent write;
      write.processor = p;
      write.t = part.t;
      write.t.op = BusOp::data_write;
      write.t.flags = kLine | kWriteBack | kSnoop | kPositionKnown;
      write.t.position = place;
      cause.change.added.push_back(write);
    }
    cause.text = fmt::format(
        "processor {} wrote the line {:08x} back before transaction {} of processor {}, by its "
        "instruction {}, and the capture lacks this",
        p, line.value, parts.front().t.index, trouble_.processor, place.instruction);
    found_.push_back(cause);
    cause.price += 0.002;
  }
}

/// Before a message of the APIC bus its sender's replay writes the command register, and the values
/// that cross no bus lack that.
void DataCauses::lost_command(std::size_t i) {
  const BusNote& note = *events_[i].event.note;
  const std::uint8_t p = note.processor;
  if (note.kind != BusNote::Kind::message || p >= accesses_.size()) return;
  const std::optional<Position> behind = shown_behind(p, i);
  constexpr PhysAddr kCommand{kApicRegisters + kApicCommand};
  for (const ReplayedAccess& a : accesses_[p]) {
    if (a.op != BusOp::data_write || a.address != kCommand) continue;
    if (behind && *behind < a.position) continue;
    const std::size_t place = place_of(p, a.position, i);
    if (place == 0) continue;
    const bool is_known = std::any_of(events_.begin(), events_.end(), [&](const ShownEvent& its) {
      return shows(p, its.event) && its.event.t.address == kCommand &&
             its.event.t.op == BusOp::data_write &&
             its.event.t.position.instruction == a.position.instruction;
    });
    ApicMessage asked = ApicMessage::of_command(a.value);
    ApicMessage sent(note.data);
    asked.destination = sent.destination = 0;
    if (is_known || asked.data() != sent.data()) continue;
    MachineCause cause;
    cause.kind = MachineCauseKind::missing_command;
    cause.change.kind = BusChange::Kind::add;
    cause.change.what = events_[place - 1].place;
    cause.change.position = a.position;
    SharedEvent write;
    write.processor = p;
    write.t.op = BusOp::data_write;
    write.t.address = kCommand;
    write.t.size = 4;
    for (std::size_t k = 0; k < 4; ++k)
      write.t.data[k] = static_cast<std::uint8_t>(a.value >> (8 * k));
    write.t.flags = kUncacheable | kPositionKnown;
    write.t.position = a.position;
    cause.change.added.push_back(write);
    cause.processor = p;
    cause.position = a.position;
    cause.address = kCommand;
    cause.text = fmt::format(
        "processor {} wrote {:08x} to its command register (ICR) at its instruction {}, and the "
        "values that cross no bus (--internal) lack this",
        p, a.value, a.position.instruction);
    cause.price = 0.35;
    found_.push_back(std::move(cause));
  }
}

}  // namespace

std::vector<MachineCause> data_causes(const BusTrouble& trouble, const BusNeighbourhood& near,
                                      std::span<const std::vector<ReplayedAccess>> accesses,
                                      std::uint32_t line_bytes) {
  return DataCauses(trouble, near, accesses, line_bytes).find();
}

}  // namespace citcat
