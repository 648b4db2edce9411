#include "events/hint.h"

#include <algorithm>
#include <utility>

#include "formats/io/error.h"

namespace citcat {
namespace {

[[noreturn]] void refuse(const Hint& hint, const std::string& missing) {
  throw UsageError("hint \"" + std::string(hint_kind_name(hint.kind)) +
                   "\": the recording has no " + missing);
}

std::string at_transaction(const char* what, const Hint& hint) {
  return std::string(what) + " of transaction " + std::to_string(hint.transaction);
}

template <class Event>
auto find_transaction(std::vector<Event>& events, std::uint64_t transaction) {
  return std::find_if(events.begin(), events.end(),
                      [&](const Event& e) { return e.transaction == transaction; });
}

std::function<void(Recording&)> set_memory(const Hint& hint, Recording& recording) {
  std::vector<std::pair<PhysAddr, std::optional<std::uint8_t>>> before;
  for (std::uint32_t i = 0; i < hint.data.size(); ++i) {
    const PhysAddr at = hint.address.plus32(i);
    before.emplace_back(at, recording.image.byte(at));
    recording.image.set(at, hint.data[i]);
  }
  return [before](Recording& r) {
    for (const auto& [at, value] : before) {
      r.image.set(at, value.value_or(0));
      if (!value) r.image.page(at.page()).valid.reset(at.offset_in_page());
    }
  };
}

std::function<void(Recording&)> set_initial(const Hint& hint, Recording& recording) {
  CpuState before = recording.initial;
  if (!set_register(recording.initial, hint.name, hint.value)) {
    refuse(hint, "register " + hint.name);
  }
  auto& unknown = recording.initial.unknown;
  unknown.erase(std::remove(unknown.begin(), unknown.end(), hint.name), unknown.end());
  return [before = std::move(before)](Recording& r) { r.initial = before; };
}

/// Puts `event` in the place of number `index`, and returns what was there.
template <class Events>
typename Events::Event exchange(Events& events, std::size_t index,
                                const typename Events::Event& event) {
  typename Events::Event before = events[index];
  events.replace(index, event);
  return before;
}

bool shows_same(const ExternalWrite& w, const Hint& hint) {
  return w.transaction == hint.transaction && w.address == hint.address;
}

std::function<void(Schedule&)> write_externally(const Hint& hint, Schedule& schedule) {
  auto& writes = schedule.external_writes;
  const auto same = std::find_if(writes.begin(), writes.end(),
                                 [&](const ExternalWrite& w) { return shows_same(w, hint); });
  if (same != writes.end()) {
    const std::size_t i = same.index();
    ExternalWrite changed = *same;
    changed.data = hint.data;
    return [i, before = exchange(writes, i, changed)](Schedule& r) {
      r.external_writes.replace(i, before);
    };
  }
  ExternalWrite w;
  w.address = hint.address;
  w.data = hint.data;
  w.position_known = true;
  w.position = hint.position;
  w.transaction = hint.transaction;
  const auto at = std::find_if(writes.begin(), writes.end(), [&](const ExternalWrite& other) {
    return other.position > hint.position ||
           (other.position == hint.position && other.transaction > hint.transaction);
  });
  const std::size_t i = at.index();
  writes.insert(i, w);
  return [i](Schedule& r) { r.external_writes.erase(i); };
}

std::function<void(Schedule&)> drop_external(const Hint& hint, Schedule& schedule) {
  auto& writes = schedule.external_writes;
  const auto at = std::find_if(writes.begin(), writes.end(),
                               [&](const ExternalWrite& w) { return shows_same(w, hint); });
  if (at == writes.end()) refuse(hint, at_transaction("external write", hint));
  const std::size_t i = at.index();
  ExternalWrite before = *at;
  writes.erase(i);
  return [i, before = std::move(before)](Schedule& r) { r.external_writes.insert(i, before); };
}

std::function<void(Schedule&)> set_port(const Hint& hint, Schedule& schedule) {
  const auto at =
      std::find_if(schedule.io_reads.begin(), schedule.io_reads.end(),
                   [&](const IoRead& read) { return read.transaction == hint.transaction; });
  if (at == schedule.io_reads.end()) refuse(hint, at_transaction("port read", hint));
  const std::size_t i = at.index();
  IoRead changed = *at;
  changed.value = static_cast<std::uint32_t>(hint.value);
  return [i, before = exchange(schedule.io_reads, i, changed)](Schedule& r) {
    r.io_reads.replace(i, before);
  };
}

void set_value(InternalRead& read, std::uint64_t value) {
  read.eax = static_cast<std::uint32_t>(value);
  read.edx = static_cast<std::uint32_t>(value >> 32);
}

std::function<void(Schedule&)> set_internal(const Hint& hint, Schedule& schedule) {
  auto& reads = schedule.internal_reads;
  if (hint.number) {
    if (*hint.number >= reads.size()) {
      refuse(hint, "value that crosses no bus with number " + std::to_string(*hint.number));
    }
    const auto n = static_cast<std::size_t>(*hint.number);
    InternalRead changed = reads[n];
    set_value(changed, hint.value);
    return [n, before = exchange(reads, n, changed)](Schedule& r) {
      r.internal_reads.replace(n, before);
    };
  }
  const auto at = std::find_if(reads.begin(), reads.end(), [&](const InternalRead& read) {
    return read.position_known && read.position >= hint.position;
  });
  const std::size_t i = at.index();
  InternalRead value;
  value.op = InternalRead::Op::rdtsc;
  value.position_known = true;
  value.position = hint.position;
  set_value(value, hint.value);
  if (at != reads.end() && at->position == hint.position && at->op == value.op) {
    value.ip = at->ip;
    return [i, before = exchange(reads, i, value)](Schedule& r) {
      r.internal_reads.replace(i, before);
    };
  }
  reads.insert(i, value);
  return [i](Schedule& r) { r.internal_reads.erase(i); };
}

/// For replays that are not compared: those that are take the result from the bus.
std::function<void(Recording&)> adopt_result(const Hint& hint, Recording& recording) {
  auto& adoptions = recording.adoptions;
  const auto at = std::find_if(adoptions.begin(), adoptions.end(), [&](const Adoption& other) {
    return other.position > hint.position;
  });
  const auto i = at - adoptions.begin();
  const auto n = static_cast<std::ptrdiff_t>(hint.data.size());
  std::vector<Adoption> added;
  for (std::uint32_t b = 0; b < hint.data.size(); ++b) {
    added.push_back({hint.position, !hint.write_back, hint.address.plus32(b), hint.data[b]});
  }
  adoptions.insert(at, added.begin(), added.end());
  return [i, n](Recording& r) {
    r.adoptions.erase(r.adoptions.begin() + i, r.adoptions.begin() + i + n);
  };
}

std::function<void(Schedule&)> change_interrupt(const Hint& hint, Schedule& schedule) {
  const auto at = find_transaction(schedule.interrupts, hint.transaction);
  if (at == schedule.interrupts.end()) refuse(hint, at_transaction("interrupt", hint));
  const auto i = static_cast<std::size_t>(at - schedule.interrupts.begin());
  const Interrupt before = *at;
  at->position = hint.position;
  at->position_known = true;
  at->vector = static_cast<std::uint8_t>(hint.value);
  return [i, before](Schedule& r) { r.interrupts[i] = before; };
}

/// What is after `transaction` has so many bytes written and interrupts before it more, or
/// with numbers that wrap around, less.
std::function<void(Schedule&)> shift_anchors(Schedule& schedule, std::uint64_t transaction,
                                             std::uint64_t writes, std::uint64_t interrupts) {
  const auto shift = [transaction](Schedule& r, std::uint64_t by_writes, std::uint64_t by_events) {
    const auto move = [&](auto& event) {
      if (event.transaction < transaction) return;
      event.anchor.writes += by_writes;
      event.anchor.interrupts += by_events;
    };
    for (Interrupt& interrupt : r.interrupts) move(interrupt);
    r.external_writes.change_each(move);
  };
  shift(schedule, writes, interrupts);
  return [shift, writes, interrupts](Schedule& r) { shift(r, ~writes + 1, ~interrupts + 1); };
}

std::function<void(Schedule&)> add_interrupt(const Hint& hint, Schedule& schedule) {
  auto& interrupts = schedule.interrupts;
  Interrupt added;
  if (hint.name != "intr" && hint.name != "nmi" && hint.name != "smi") {
    refuse(hint, "interrupt named " + hint.name + ": it has intr, nmi and smi");
  }
  if (hint.name == "nmi") added.kind = Interrupt::Kind::nmi;
  if (hint.name == "smi") added.kind = Interrupt::Kind::smi;
  added.vector = static_cast<std::uint8_t>(hint.value);
  added.position_known = true;
  added.position = hint.position;
  added.transaction = hint.transaction;
  const auto at = std::find_if(interrupts.begin(), interrupts.end(), [&](const Interrupt& other) {
    return other.transaction >= hint.transaction;
  });
  const auto i = at - interrupts.begin();
  interrupts.insert(at, added);
  return [i](Schedule& r) { r.interrupts.erase(r.interrupts.begin() + i); };
}

std::function<void(Schedule&)> drop_interrupt(const Hint& hint, Schedule& schedule) {
  const auto at = find_transaction(schedule.interrupts, hint.transaction);
  if (at == schedule.interrupts.end()) refuse(hint, at_transaction("interrupt", hint));
  const auto i = at - schedule.interrupts.begin();
  const Interrupt before = *at;
  schedule.interrupts.erase(at);
  return [i, before](Schedule& r) { r.interrupts.insert(r.interrupts.begin() + i, before); };
}

}  // namespace

bool Hint::concerns_evidence() const {
  return kind == Kind::captured_write || kind == Kind::added_captured_write ||
         kind == Kind::no_captured_write;
}

std::vector<std::uint64_t> reviewed_transactions(const std::vector<Hint>& hints,
                                                 std::vector<std::uint64_t> given) {
  for (const Hint& hint : hints) {
    if (hint.is_reviewed_transaction()) given.push_back(hint.transaction);
  }
  std::sort(given.begin(), given.end());
  return given;
}

std::function<void(Schedule&)> apply_hint(const Hint& hint, Schedule& schedule) {
  switch (hint.kind) {
    case Hint::Kind::external_write:
      return write_externally(hint, schedule);
    case Hint::Kind::no_external_write:
      return drop_external(hint, schedule);
    case Hint::Kind::port_read:
      return set_port(hint, schedule);
    case Hint::Kind::internal_read:
      return set_internal(hint, schedule);
    case Hint::Kind::interrupt:
      return change_interrupt(hint, schedule);
    case Hint::Kind::added_interrupt:
      return add_interrupt(hint, schedule);
    case Hint::Kind::no_interrupt:
      return drop_interrupt(hint, schedule);
    case Hint::Kind::added_captured_write:
      if (!hint.write_back) return shift_anchors(schedule, hint.transaction, hint.data.size(), 0);
      break;
    case Hint::Kind::no_captured_write:
      return shift_anchors(schedule, hint.transaction, ~std::uint64_t{hint.data.size()} + 1, 0);
    case Hint::Kind::memory:
    case Hint::Kind::register_value:
    case Hint::Kind::result:
    case Hint::Kind::captured_write:
      break;
  }
  return [](Schedule&) {};
}

std::function<void(Recording&)> apply_hint(const Hint& hint, Recording& recording) {
  switch (hint.kind) {
    case Hint::Kind::memory:
      return set_memory(hint, recording);
    case Hint::Kind::register_value:
      return set_initial(hint, recording);
    case Hint::Kind::result:
      return adopt_result(hint, recording);
    default:
      return apply_hint(hint, static_cast<Schedule&>(recording));
  }
}

// ---------------------------------------------------------------------------------------------

namespace {

void set_bytes(BusTransaction& t, const Hint& hint) {
  t.address = hint.address;
  t.size = static_cast<std::uint8_t>(std::min(hint.data.size(), kMaxTransactionBytes));
  t.data = {};
  std::copy_n(hint.data.begin(), t.size, t.data.begin());
}

/// Right before `next`; it has a position where that has one.
BusTransaction added_write(const Hint& hint, const BusTransaction& next) {
  BusTransaction t;
  t.index = hint.transaction;
  t.op = BusOp::data_write;
  if (next.has(kPositionKnown)) {
    t.position = hint.position;
    t.flags = kPositionKnown;
  }
  if (hint.write_back) t.flags |= kLine | kWriteBack;
  set_bytes(t, hint);
  return t;
}

}  // namespace

void HintedEvidence::add(const Hint& hint) {
  if (hint.kind == Hint::Kind::added_captured_write) {
    edits_[hint.transaction].before.push_back(hint);
  } else if (hint.kind == Hint::Kind::captured_write ||
             hint.kind == Hint::Kind::no_captured_write) {
    edits_[hint.transaction].change = hint;
  }
}

void HintedEvidence::set_hints(const std::vector<Hint>& hints) {
  edits_.clear();
  held_.reset();
  for (const Hint& hint : hints) add(hint);
}

bool HintedEvidence::next(BusTransaction& out) {
  for (;;) {
    if (!held_) {
      if (!source_->next(out)) return false;
      if (edits_.empty() || edits_.count(out.index) == 0) return true;
      held_ = out;
      inserted_ = 0;
    }
    const Edit& edit = edits_[held_->index];
    if (inserted_ < edit.before.size()) {
      out = added_write(edit.before[inserted_++], *held_);
      return true;
    }
    out = *std::exchange(held_, std::nullopt);
    if (!edit.change) return true;
    if (edit.change->kind == Hint::Kind::no_captured_write) continue;
    set_bytes(out, *edit.change);
    return true;
  }
}

}  // namespace citcat
