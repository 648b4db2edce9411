#include "replay/diagnose/processors/changed_machine.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "events/derive/recording_builder.h"

namespace citcat {
namespace {

/// The events of a bus with a change among them, numbered anew.
class ChangedBus {
 public:
  /// `by`: who did it in the recording.
  using Take = std::function<void(const SharedEvent& event, std::uint8_t by, std::uint64_t number)>;

  ChangedBus(const BusChange& change, Take take) : change_(change), take_(std::move(take)) {}

  void run(SharedBus bus) {
    std::uint64_t next_note = 0;
    for (SharedEvent event; bus.next(event);) {
      const BusPlace place = event.note ? BusPlace{event.processor, next_note++, true}
                                        : BusPlace{event.processor, event.t.index, false};
      one(std::move(event), place);
    }
    release();
  }

 private:
  void one(SharedEvent event, const BusPlace& place) {
    const bool meant = place.is_note == change_.what.is_note &&
                       (place.is_note || place.processor == change_.what.processor) &&
                       place.index - change_.what.index < change_.parts;
    switch (change_.kind) {
      case BusChange::Kind::give:
        if (meant) return give(std::move(event));
        break;
      case BusChange::Kind::drop:
        if (meant) return;
        break;
      case BusChange::Kind::hold:
        holds_ |= meant;
        if (holds_ && event.processor == change_.what.processor) {
          held_.push_back(std::move(event));
          return;
        }
        break;
      case BusChange::Kind::turn:
        if (meant) event.t.flags ^= change_.flags;
        break;
      case BusChange::Kind::line:
        if (meant && event.note) event.note->address = change_.note.address;
        break;
      case BusChange::Kind::data:
        if (meant && event.note) event.note->data = change_.note.data;
        break;
      case BusChange::Kind::read:
        if (meant) event.t.data = change_.bytes;
        break;
      case BusChange::Kind::add:
        break;
    }
    tell(event);
    if (change_.kind == BusChange::Kind::hold && place == change_.behind) release();
    if (change_.kind == BusChange::Kind::add && meant) tell_added();
  }

  void give(SharedEvent event) {
    const std::uint8_t by = event.processor;
    event.processor = change_.to;
    if (event.note) {
      event.note->processor = change_.to;
      event.note->is_lone = false;
    }
    if (change_.position) {
      event.t.position = *change_.position;
      event.t.flags |= kPositionKnown;
    } else {
      event.t.position = {};
      event.t.flags &= static_cast<std::uint16_t>(~kPositionKnown);
    }
    take_(event, by, ++number_);
  }

  void tell_added() {
    for (const SharedEvent& event : change_.added) tell(event);
    if (!change_.added.empty()) return;
    SharedEvent event;
    event.processor = change_.note.processor;
    event.note = change_.note;
    tell(event);
  }

  void release() {
    holds_ = false;
    for (const SharedEvent& event : held_) tell(event);
    held_.clear();
  }

  void tell(const SharedEvent& event) { take_(event, event.processor, ++number_); }

  const BusChange& change_;
  Take take_;
  std::vector<SharedEvent> held_;
  bool holds_ = false;
  std::uint64_t number_ = 0;
};

/// Values of port reads, which the evidence does not have: as the recordings say.
class PortValues {
 public:
  explicit PortValues(const std::vector<RecordingFile>& files) {
    for (const RecordingFile& file : files) {
      its_.push_back({file.recording().io_reads.begin(), file.recording().io_reads.end()});
    }
  }
  void put_into(std::size_t processor, BusTransaction& t) {
    auto& its = its_[processor];
    while (its.next != its.end && (*its.next).transaction < t.index) ++its.next;
    if (its.next == its.end || (*its.next).transaction != t.index) return;
    const std::uint32_t value = (*its.next).value;
    for (std::uint32_t i = 0; i < 4; ++i) t.data[i] = static_cast<std::uint8_t>(value >> (8 * i));
    for (std::uint32_t i = t.size; i < 4; ++i) t.data[i] = 0;
  }

 private:
  using Iterator = decltype(std::declval<const IoReads&>().begin());
  struct Its {
    Iterator next, end;
  };
  std::vector<Its> its_;
};

/// Whether the bus shows the processor up to the end of its recording.
bool is_shown_to_end(const RecordingFile& file) {
  const std::unique_ptr<EvidenceReader> evidence = file.evidence();
  std::uint64_t shown = 0;
  for (BusTransaction t; evidence->next(t);) {
    if (t.has(kPositionKnown)) shown = std::max(shown, t.position.instruction + 1);
  }
  return shown == file.recording().instructions;
}

/// What is derived is that of the bus; the rest stays. `ends_with_bus`: so is the end.
Recording completed(Recording derived, const Recording& before, bool ends_with_bus) {
  derived.initial = before.initial;
  derived.internal_reads = before.internal_reads;
  derived.dropped_translations = before.dropped_translations;
  derived.provenance = before.provenance;
  derived.bus.address_mask = before.bus.address_mask;
  if (!ends_with_bus) derived.instructions = before.instructions;
  derived.end = before.end;
  derived.ending = before.ending;
  return derived;
}

}  // namespace

void write_changed_machine(const MachineFile& machine, const BusChange& change,
                           const std::string& path) {
  const std::vector<RecordingFile> files = open_processors(machine);
  RecordingFileWriter archive(path, {.passing = true, .evidence_level = 1});
  std::vector<BusNote> notes;
  for (std::size_t p = 0; p < files.size(); ++p) {
    archive.select(p);
    BuilderOptions options;
    options.bus = files[p].recording().bus;
    RecordingBuilder builder(options, &archive);
    builder.start({});
    std::uint64_t index = 0;
    PortValues ports(files);
    ChangedBus bus(change, [&](const SharedEvent& event, std::uint8_t by, std::uint64_t number) {
      if (event.note) {
        if (p != 0) return;
        notes.push_back(*event.note);
        notes.back().clock = number;
        return;
      }
      if (event.processor != p) return;
      BusTransaction t = event.t;
      if (t.op == BusOp::io_read) ports.put_into(by, t);
      t.index = index++;
      t.clock = number;
      t.flags |= kClockKnown;
      builder.add(t);
    });
    bus.run(shared_bus_of(machine, files));
    archive.select(p);
    // What is taken away may be all that shows the processor so far.
    const bool takes_away =
        change.kind == BusChange::Kind::give || change.kind == BusChange::Kind::drop;
    const bool loses = p == change.what.processor && takes_away;
    archive.add(
        completed(builder.finish(), files[p].recording(), loses && is_shown_to_end(files[p])));
  }
  archive.close();
  MachineInfo info = machine.info();
  info.leaves_out = false;
  add_machine(path, info, notes);
}

CrossCheckResult check_changed_bus(const MachineFile& machine,
                                   const std::vector<RecordingFile>& files,
                                   const BusChange& change) {
  CrossCheck check = cross_check_of(machine, files);
  ChangedBus bus(change, [&](const SharedEvent& event, std::uint8_t, std::uint64_t) {
    SharedEvent plain = event;
    plain.external.reset();  // whose it then is cannot be known from its number
    check.take(plain);
  });
  bus.run(shared_bus_of(machine, files));
  check.finish();
  return check.result();
}

}  // namespace citcat
