#include "replay/diagnose/processors/machine_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "events/processors/apic_receivers.h"
#include "events/processors/bus_flags.h"
#include "events/startup_event.h"
#include "replay/diagnose/processors/data_causes.h"
#include "replay/diagnose/processors/replayed_accesses.h"

namespace citcat {
namespace {

constexpr std::size_t kMostAccesses = 100'000;
/// Instructions beyond what the bus shows of a processor in which it may still have done something.
constexpr std::uint64_t kFarther = 4096;

bool is_interrupt(const BusTransaction& t) {
  return t.op == BusOp::nmi || (t.op == BusOp::interrupt_acknowledge && !is_startup(t));
}

std::string what(const BusTransaction& t) {
  if (t.op == BusOp::nmi) return "an NMI";
  if (t.op == BusOp::interrupt_acknowledge) return fmt::format("the interrupt {:02x}", t.data[0]);
  const bool port = t.op == BusOp::io_read || t.op == BusOp::io_write;
  return fmt::format("a {} of {} bytes at {:0{}x}", bus_op_name(t.op), t.size, t.address.value,
                     port ? 4 : 8);
}

std::string at(const BusTransaction& t) {
  return t.has(kPositionKnown) ? fmt::format(" at its instruction {}", t.position.instruction)
                               : std::string();
}

/// What one processor does around the trouble.
struct ProcessorView {
  std::vector<ReplayedAccess> accesses;
  Position from, to;
};

class MachineCauses {
 public:
  MachineCauses(const std::vector<RecordingFile>& files, const BusTrouble& trouble,
                const BusNeighbourhood& near)
      : files_(files), trouble_(trouble), near_(near), views_(files.size()) {
    line_bytes_ = shared_line_bytes(files.front().recording());
    for (std::size_t p = 0; p < files_.size(); ++p) look(p);
  }

  std::vector<MachineCause> find() {
    held_anywhere();
    messages();
    of_data();
    for (std::size_t i = 0; i < near_.events.size(); ++i) {
      given(near_.events, i);
      of_another_line(i);
    }
    for (std::size_t i = 0; i < near_.line.size(); ++i) {
      given(near_.line, i);
      held(i);
      invalidated(i);
      filled(i);
    }
    std::stable_sort(
        found_.begin(), found_.end(),
        [](const MachineCause& a, const MachineCause& b) { return a.price < b.price; });
    return std::move(found_);
  }

 private:
  void look(std::size_t p);
  void of_data();
  std::uint64_t distance(std::uint64_t clock) const {
    return clock < trouble_.clock ? trouble_.clock - clock : clock - trouble_.clock;
  }
  Position before(std::size_t p, const std::vector<ShownEvent>& events, std::size_t i) const;
  Position behind(std::size_t p, const std::vector<ShownEvent>& events, std::size_t i) const;
  bool is_own(std::size_t p, const BusTransaction& t) const;
  /// What contradicts the bus is this.
  bool is_trouble(const ShownEvent& its) const {
    return trouble_.is_contradiction && its.clock == trouble_.clock &&
           its.event.processor == trouble_.processor;
  }
  /// The first of the transactions in which a line goes, and the last one; others are both.
  bool begins(const SharedEvent& event) const {
    const BusTransaction& t = event.t;
    return event.note || !t.has(kLine) || t.address.offset_in(line_bytes_) == 0;
  }
  bool ends(const SharedEvent& event) const {
    const BusTransaction& t = event.t;
    return event.note || !t.has(kLine) || t.address.plus32(t.size).offset_in(line_bytes_) == 0;
  }
  std::uint8_t line_parts(const BusTransaction& t) const {
    const bool in_parts = t.has(kLine) && t.size < line_bytes_;
    return in_parts ? static_cast<std::uint8_t>(line_bytes_ / t.size) : std::uint8_t{1};
  }
  void given(const std::vector<ShownEvent>& events, std::size_t i);
  void give_to(std::uint8_t to, const std::vector<ShownEvent>& events, std::size_t i);
  void give_note(const ShownEvent& note);
  void of_another_line(std::size_t i);
  void filled(std::size_t i);
  void held(std::size_t i);
  void held_anywhere();
  void hold(const ShownEvent& its, const ShownEvent& behind, double price);
  void invalidated(std::size_t i);
  void messages();
  void message_of(const ShownEvent& write, const ApicMessage& asked);
  void add(MachineCause cause, std::uint64_t clock);

  const std::vector<RecordingFile>& files_;
  const BusTrouble& trouble_;
  const BusNeighbourhood& near_;
  std::vector<ProcessorView> views_;
  std::uint32_t line_bytes_ = 32;
  std::vector<MachineCause> found_;
  std::set<std::tuple<int, unsigned, std::uint64_t, bool, unsigned, std::uint64_t>> told_;
};

/// Replays a processor through what the bus shows around the trouble.
void MachineCauses::look(std::size_t p) {
  std::optional<Position> first, last;
  for (const auto* const events : {&near_.events, &near_.line}) {
    for (const ShownEvent& its : *events) {
      if (its.event.note || its.event.processor != p || !its.event.t.has(kPositionKnown)) continue;
      const Position here = its.event.t.position;
      first = first ? std::min(*first, here) : here;
      last = last ? std::max(*last, here) : here;
    }
  }
  if (trouble_.processor == p && trouble_.position) {
    first = first ? std::min(*first, *trouble_.position) : *trouble_.position;
    last = last ? std::max(*last, *trouble_.position) : *trouble_.position;
  }
  if (!first) return;
  ProcessorView& view = views_[p];
  view.from = {first->instruction - std::min<std::uint64_t>(first->instruction, 64), 0};
  view.to = {last->instruction + kFarther, 0};
  view.accesses = replayed_accesses(files_[p], view.from, view.to, kMostAccesses);
}

void MachineCauses::of_data() {
  std::vector<std::vector<ReplayedAccess>> accesses;
  for (const ProcessorView& view : views_) accesses.push_back(view.accesses);
  const bool caches = files_.front().recording().bus.form == CacheForm::write_back;
  for (MachineCause& cause : data_causes(trouble_, near_, accesses, caches ? line_bytes_ : 0))
    add(std::move(cause), trouble_.clock);
}

/// Where processor `p` was when the bus showed an event of another one: after this, before that.
Position MachineCauses::before(std::size_t p, const std::vector<ShownEvent>& events,
                               std::size_t i) const {
  while (i-- > 0) {
    const SharedEvent& event = events[i].event;
    if (!event.note && event.processor == p && event.t.has(kPositionKnown)) return event.t.position;
  }
  return views_[p].from;
}

Position MachineCauses::behind(std::size_t p, const std::vector<ShownEvent>& events,
                               std::size_t i) const {
  while (++i < events.size()) {
    const SharedEvent& event = events[i].event;
    if (!event.note && event.processor == p && event.t.has(kPositionKnown)) return event.t.position;
  }
  return views_[p].to;
}

/// Its replay does what the bus shows there.
bool MachineCauses::is_own(std::size_t p, const BusTransaction& t) const {
  if (!t.has(kPositionKnown)) return false;
  const auto& accesses = views_[p].accesses;
  return std::any_of(accesses.begin(), accesses.end(), [&](const ReplayedAccess& a) {
    return a.position.instruction == t.position.instruction && is_shown_by(a, t, line_bytes_);
  });
}

void MachineCauses::add(MachineCause cause, std::uint64_t clock) {
  const auto key = std::make_tuple(
      static_cast<int>(cause.kind), unsigned{cause.change.what.processor}, cause.change.what.index,
      cause.change.what.is_note, unsigned{cause.change.to},
      cause.change.position.value_or(Position{}).instruction ^ cause.change.behind.index ^
          cause.change.note.address.value ^ cause.change.note.data ^ cause.change.flags);
  if (!told_.insert(key).second) return;
  cause.price += 0.001 * static_cast<double>(std::min<std::uint64_t>(distance(clock), 500));
  found_.push_back(std::move(cause));
}

void MachineCauses::given(const std::vector<ShownEvent>& events, std::size_t i) {
  const ShownEvent& its = events[i];
  if (its.event.note) return give_note(its);
  const BusTransaction& t = its.event.t;
  const bool second_part = t.has(kLine) && t.address.offset_in(line_bytes_) != 0;
  if (second_part || t.op > BusOp::interrupt_acknowledge) {
    if (t.op != BusOp::nmi) return;
  }
  for (std::size_t to = 0; to < files_.size(); ++to) {
    if (to != its.event.processor) give_to(static_cast<std::uint8_t>(to), events, i);
  }
}

/// The transaction was that of another processor, whose replay does the same at that time.
void MachineCauses::give_to(std::uint8_t to, const std::vector<ShownEvent>& events, std::size_t i) {
  const SharedEvent& event = events[i].event;
  const BusTransaction& t = event.t;
  const Position from = before(to, events, i), until = behind(to, events, i);
  std::vector<std::optional<Position>> places;
  for (const ReplayedAccess& a : views_[to].accesses) {
    if (a.position < from || until < a.position || !is_shown_by(a, t, line_bytes_)) continue;
    if (places.empty() || places.back() != a.position) places.emplace_back(a.position);
  }
  const bool unforced = is_interrupt(t) || t.has(kWriteBack);
  if (places.empty() && !unforced) return;
  // Who reads a place over and over takes the line where it was lost: there are many such places.
  constexpr std::ptrdiff_t kFirst = 3, kLast = 3;
  if (places.size() > static_cast<std::size_t>(kFirst + kLast))
    places.erase(places.begin() + kFirst, places.end() - kLast);
  if (t.has(kPositionKnown) && !(t.position < from) && !(until < t.position))
    places.insert(places.begin(), t.position);
  if (unforced) {
    places.emplace_back(from);
    places.emplace_back(until);
    if (trouble_.processor == to && trouble_.position) places.emplace_back(trouble_.position);
  }
  MachineCause cause;
  cause.kind = MachineCauseKind::wrong_processor;
  cause.change.kind = BusChange::Kind::give;
  cause.change.what = events[i].place;
  cause.change.to = to;
  cause.change.parts = line_parts(t);
  cause.processor = event.processor;
  cause.transaction = t.index;
  cause.address = t.address;
  if (t.has(kPositionKnown)) cause.position = t.position;
  cause.price = is_own(event.processor, t) ? 3 : 1;
  constexpr std::size_t kCheapPlaces = 4;
  for (std::size_t n = 0; n < places.size(); ++n) {
    cause.change.position = places[n];
    if (n == kCheapPlaces) cause.price += 1;
    cause.text = fmt::format(
        "transaction {} of processor {}, {}{}, was processor {}'s, at its instruction {}", t.index,
        event.processor, what(t), at(t), to, places[n]->instruction);
    add(cause, events[i].clock);
  }
}

void MachineCauses::give_note(const ShownEvent& its) {
  const BusNote& note = *its.event.note;
  if (note.kind != BusNote::Kind::invalidate) return;
  MachineCause cause;
  cause.kind = MachineCauseKind::wrong_processor;
  cause.change.what = its.place;
  cause.processor = note.processor;
  cause.address = note.address;
  for (std::size_t to = 0; to < files_.size(); ++to) {
    if (to == note.processor) continue;
    cause.change.to = static_cast<std::uint8_t>(to);
    cause.text = fmt::format(
        "it was processor {} that made the line {:08x} its own at clock {}, and not processor {}",
        to, note.address.value, note.clock, note.processor);
    add(cause, its.clock);
  }
  cause.kind = MachineCauseKind::extra_invalidation;
  cause.change.kind = BusChange::Kind::drop;
  cause.text = fmt::format("processor {} did not make the line {:08x} its own at clock {}",
                           note.processor, note.address.value, note.clock);
  cause.price = is_trouble(its) ? 0.9 : 2;
  add(std::move(cause), its.clock);
}

/// An invalidation was of another line: one that its processor's replay stores to there.
void MachineCauses::of_another_line(std::size_t i) {
  const ShownEvent& its = near_.events[i];
  if (!its.event.note || its.event.note->kind != BusNote::Kind::invalidate) return;
  const BusNote& note = *its.event.note;
  const std::uint8_t p = note.processor;
  const Position from = before(p, near_.events, i), until = behind(p, near_.events, i);
  std::set<std::uint64_t> lines;
  for (const ReplayedAccess& a : views_[p].accesses) {
    if (a.op != BusOp::data_write || a.position < from || until < a.position) continue;
    const std::uint64_t line = a.address.begin_of(line_bytes_).value;
    constexpr std::size_t kMostLines = 6;
    if (line == note.address.value || lines.size() == kMostLines || !lines.insert(line).second)
      continue;
    MachineCause cause;
    cause.kind = MachineCauseKind::wrong_line;
    cause.change.kind = BusChange::Kind::line;
    cause.change.what = its.place;
    cause.change.note.address = PhysAddr{line};
    cause.processor = p;
    cause.position = a.position;
    cause.address = note.address;
    cause.text = fmt::format(
        "at clock {} processor {} made the line {:08x} its own, at its instruction {}, and not the "
        "line {:08x}",
        note.clock, p, line, a.position.instruction, note.address.value);
    cause.price = is_trouble(its) ? 0.85 : 1.9;
    add(std::move(cause), its.clock);
  }
}

/// Whether the line was shared, or came for a store, was captured wrongly.
void MachineCauses::filled(std::size_t i) {
  const ShownEvent& its = near_.line[i];
  if (!trouble_.is_contradiction || its.event.note || its.clock > trouble_.clock) return;
  const BusTransaction& t = its.event.t;
  const bool reads = t.op == BusOp::data_read || t.op == BusOp::code_read;
  if (!reads || !t.has(kLine) || t.address.offset_in(line_bytes_) != 0) return;
  for (const std::uint16_t flag : {kSharedFill, static_cast<std::uint16_t>(kStoreFill)}) {
    if (flag == kStoreFill && t.op == BusOp::code_read) continue;
    const bool was = (t.flags & flag) != 0;
    MachineCause cause;
    cause.kind = MachineCauseKind::wrong_fill;
    cause.change.kind = BusChange::Kind::turn;
    cause.change.what = its.place;
    cause.change.parts = line_parts(t);
    cause.change.flags = flag;
    cause.processor = its.event.processor;
    cause.transaction = t.index;
    cause.address = t.address;
    if (t.has(kPositionKnown)) cause.position = t.position;
    cause.text = fmt::format("transaction {} of processor {}, {}{}, {} {}", t.index,
                             its.event.processor, what(t), at(t), was ? "was not" : "was",
                             flag == kSharedFill ? "of a line that another processor kept (HIT#)"
                                                 : "for a store (read and invalidate)");
    cause.price = is_trouble(its) ? 1.1 : 1.4;
    add(std::move(cause), its.clock);
  }
}

/// What one processor did on the line came after what another one did there.
void MachineCauses::held(std::size_t i) {
  const ShownEvent& first = near_.line[i];
  constexpr std::size_t kNear = 16;
  const auto writes = [](const ShownEvent& e) {
    return e.event.note || e.event.t.op == BusOp::data_write || e.event.t.has(kStoreFill);
  };
  const auto name = [](const ShownEvent& e) {
    if (e.event.note) return fmt::format("the invalidation at clock {}", e.clock);
    return fmt::format("transaction {}", e.event.t.index);
  };
  if (!begins(first.event)) return;
  for (std::size_t k = i + 1; k < std::min(near_.line.size(), i + kNear); ++k) {
    const ShownEvent& other = near_.line[k];
    if (other.event.processor == first.event.processor || !ends(other.event)) continue;
    if (!writes(first) && !writes(other)) continue;
    if (other.clock < first.clock) continue;
    MachineCause cause;
    cause.kind = MachineCauseKind::wrong_order;
    cause.change.kind = BusChange::Kind::hold;
    cause.change.what = first.place;
    cause.change.behind = other.place;
    cause.processor = first.event.processor;
    if (!first.event.note) {
      cause.transaction = first.event.t.index;
      if (first.event.t.has(kPositionKnown)) cause.position = first.event.t.position;
    }
    cause.address = first.event.note ? first.event.note->address : first.event.t.address;
    cause.text =
        fmt::format("{} of processor {} came after {} of processor {}, on {:08x}", name(first),
                    first.event.processor, name(other), other.event.processor, cause.address.value);
    const bool troubled = first.event.processor == trouble_.processor &&
                          first.clock == trouble_.clock && trouble_.is_contradiction;
    cause.price = troubled ? 1 : 1.5;
    add(std::move(cause), first.clock);
  }
}

/// What contradicts the bus came later: after what others did next, or after the end of the
/// locked access that it lies in. Or that access began after it.
void MachineCauses::held_anywhere() {
  const ShownEvent* lock_begin = nullptr;
  for (const ShownEvent& its : near_.events) {
    const SharedEvent& event = its.event;
    if (its.clock > trouble_.clock) break;
    if (event.note) continue;
    if (is_trouble(its) && begins(event)) {
      if (near_.lock_end) hold(its, *near_.lock_end, 1.2);
      double price = 1.25;
      for (const ShownEvent& turn : near_.turns)
        if (ends(turn.event)) hold(its, turn, price += 0.02);
    }
    if (near_.lock_end && event.processor == near_.lock_end->event.processor &&
        event.t.op == BusOp::data_read && (event.t.flags & kLocked) != 0)
      lock_begin = &its;
  }
  if (lock_begin != nullptr && near_.inside_lock && ends(near_.inside_lock->event))
    hold(*lock_begin, *near_.inside_lock, 1.3);
}

/// `its` came after another transaction.
void MachineCauses::hold(const ShownEvent& its, const ShownEvent& behind, double price) {
  MachineCause cause;
  cause.kind = MachineCauseKind::wrong_order;
  cause.change.kind = BusChange::Kind::hold;
  cause.change.what = its.place;
  cause.change.behind = behind.place;
  cause.processor = its.event.processor;
  cause.transaction = its.event.t.index;
  if (its.event.t.has(kPositionKnown)) cause.position = its.event.t.position;
  cause.address = its.event.t.address;
  cause.text = fmt::format(
      "transaction {} of processor {} came after transaction {} of processor {}", its.event.t.index,
      its.event.processor, behind.event.t.index, behind.event.processor);
  cause.price = price;
  add(std::move(cause), its.clock);
}

/// A processor that shares a line stores to it: the bus must have shown that it made it its own.
void MachineCauses::invalidated(std::size_t i) {
  if (!trouble_.is_contradiction || near_.line[i].clock > trouble_.clock) return;
  const std::uint8_t p = trouble_.processor;
  const ShownEvent& shared = near_.line[i];
  const PhysAddr line = trouble_.address->begin_of(line_bytes_);
  const Position from = before(p, near_.line, i + 1);
  Position until = behind(p, near_.line, i);
  for (const ReplayedAccess& a : views_[p].accesses) {
    if (a.op != BusOp::data_write || a.position < from || until < a.position) continue;
    if (!overlap(line, line_bytes_, a.address, a.size)) continue;
    // After the last that the bus shows of it before its store.
    const ShownEvent* behind_it = &shared;
    for (const ShownEvent& its : near_.events) {
      const SharedEvent& event = its.event;
      const bool earlier = !event.note && event.processor == p && event.t.has(kPositionKnown) &&
                           event.t.position <= a.position && its.clock >= shared.clock;
      if (earlier && its.clock >= behind_it->clock) behind_it = &its;
    }
    MachineCause cause;
    cause.kind = MachineCauseKind::missing_invalidation;
    cause.change.kind = BusChange::Kind::add;
    cause.change.what = behind_it->place;
    cause.change.note.processor = p;
    cause.change.note.address = line;
    cause.processor = p;
    cause.position = a.position;
    cause.address = line;
    cause.text = fmt::format(
        "processor {} made the line {:08x} its own at its instruction {} ({:08x}), and the capture "
        "lacks the invalidation",
        p, line.value, a.position.instruction, a.instruction.value);
    cause.price = 0.9;
    return add(std::move(cause), shared.clock);
  }
}

/// Changes after which messages of the APIC bus are those that command registers (ICR) ask for.
void MachineCauses::messages() {
  if (!trouble_.is_contradiction) return;
  std::map<std::uint8_t, std::uint8_t> destinations;  // by processor, from the upper half
  for (const ShownEvent& its : near_.events) {
    const BusTransaction& t = its.event.t;
    if (its.event.note || t.op != BusOp::data_write) continue;
    if (t.address == PhysAddr{kApicRegisters + kApicCommandHigh})
      destinations[its.event.processor] = static_cast<std::uint8_t>(t.value() >> 24);
    if (t.address != PhysAddr{kApicRegisters + kApicCommand}) continue;
    ApicMessage asked = ApicMessage::of_command(t.value());
    asked.destination = destinations[its.event.processor];
    message_of(its, asked);
  }
  for (const ShownEvent& its : near_.events) {
    if (!its.event.note || its.event.note->kind != BusNote::Kind::message) continue;
    MachineCause cause;
    cause.kind = MachineCauseKind::extra_message;
    cause.change.kind = BusChange::Kind::drop;
    cause.change.what = its.place;
    cause.processor = its.event.processor;
    cause.text =
        fmt::format("processor {} did not send the message at clock {}: {}", its.event.processor,
                    its.clock, ApicMessage(its.event.note->data).text());
    cause.price = is_trouble(its) ? 0.97 : 2;
    add(std::move(cause), its.clock);
  }
}

/// The message that follows this write of a command register is missing, or is another one.
void MachineCauses::message_of(const ShownEvent& write, const ApicMessage& asked) {
  const BusTransaction& t = write.event.t;
  MachineCause cause;
  cause.processor = write.event.processor;
  cause.transaction = t.index;
  cause.address = t.address;
  if (t.has(kPositionKnown)) cause.position = t.position;
  BusNote& note = cause.change.note;
  note.kind = BusNote::Kind::message;
  note.processor = write.event.processor;
  note.size = 4;
  note.data = asked.data();
  cause.kind = MachineCauseKind::missing_message;
  cause.change.kind = BusChange::Kind::add;
  cause.change.what = write.place;
  cause.text = fmt::format(
      "processor {} sent a message by its transaction {}{}, which the capture lacks: {}",
      write.event.processor, t.index, at(t), asked.text());
  // Cheaper than `wrong_message`, so tried first: if a later message were taken for this one, its
  // own absence might not show before the end of the bus.
  cause.price = 0.4;
  add(cause, write.clock);
  cause.kind = MachineCauseKind::wrong_message;
  cause.change.kind = BusChange::Kind::data;
  for (const ShownEvent& its : near_.events) {
    const bool may_be = its.event.note && its.event.note->kind == BusNote::Kind::message &&
                        its.event.processor == write.event.processor && its.clock >= write.clock;
    if (!may_be || its.event.note->data == note.data) continue;
    cause.change.what = its.place;
    cause.text = fmt::format(
        "the message of processor {} at clock {} should be the one that its transaction {}{} "
        "requests ({}), but was captured as {}",
        write.event.processor, its.clock, t.index, at(t), asked.text(),
        ApicMessage(its.event.note->data).text());
    cause.price = is_trouble(its) ? 0.95 : 1;
    return add(cause, its.clock);
  }
}

}  // namespace

std::string_view machine_cause_name(MachineCauseKind kind) {
  switch (kind) {
    case MachineCauseKind::wrong_processor:
      return "wrong_processor";
    case MachineCauseKind::missing_invalidation:
      return "missing_invalidation";
    case MachineCauseKind::extra_invalidation:
      return "extra_invalidation";
    case MachineCauseKind::wrong_order:
      return "wrong_order";
    case MachineCauseKind::wrong_line:
      return "wrong_line";
    case MachineCauseKind::wrong_fill:
      return "wrong_fill";
    case MachineCauseKind::missing_message:
      return "missing_message";
    case MachineCauseKind::extra_message:
      return "extra_message";
    case MachineCauseKind::wrong_message:
      return "wrong_message";
    case MachineCauseKind::captured_read:
      return "captured_read";
    case MachineCauseKind::missing_write_back:
      return "missing_write_back";
    case MachineCauseKind::missing_command:
      return "missing_command";
  }
  return "";
}

std::vector<MachineCause> machine_causes(const std::vector<RecordingFile>& files,
                                         const BusTrouble& trouble,
                                         const BusNeighbourhood& neighbourhood) {
  return MachineCauses(files, trouble, neighbourhood).find();
}

}  // namespace citcat
