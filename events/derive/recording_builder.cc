#include "events/derive/recording_builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "events/derive/begun_instruction.h"
#include "events/startup_event.h"

namespace citcat {
namespace {

/// Calls `fn(first, size)` for the pieces of a transaction's bytes, none of which crosses a line of
/// the memory model. No real transfer is more than one: it is the largest line.
template <typename Fn>
void for_pieces(const BusTransaction& t, Fn fn) {
  const std::uint32_t room = MemoryModel::kLineBytes - t.address.offset_in(MemoryModel::kLineBytes);
  if (t.size <= room) [[likely]] {
    fn(0u, std::uint32_t{t.size});
    return;
  }
  fn(0u, room);
  fn(room, t.size - room);
}

void put(MemoryModel::Page& page, std::uint32_t offset, std::span<const std::uint8_t> bytes,
         std::uint32_t size) {
  MemoryModel::LineBytes(page.line(offset), offset, size).put(bytes);
}

unsigned granule_shift(const BusModel& bus) { return bus.bus_bytes < 4 ? 0 : 2; }

}  // namespace

RecordingBuilder::RecordingBuilder(const BuilderOptions& options, EvidenceWriter* evidence)
    : options_(options), evidence_(evidence), model_(granule_shift(options.bus)) {}

void RecordingBuilder::observe(const BusTransaction& t) {
  if (!t.is_memory() || t.has(kStateWindow)) return;
  saw_line_ |= t.has(kLine);
  saw_write_back_ |= t.has(kWriteBack);
  for_pieces(t, [&](std::uint32_t first, std::uint32_t size) {
    const PhysAddr address = t.address.plus32(first);
    put(model_.page(address.page()), address.offset_in_page(), std::span(t.data).subspan(first),
        size);
  });
}

void RecordingBuilder::start(const Position& base) {
  base_ = base;
  before_ = model_.snapshot();
  model_.clear();
}

/// A read that shows something new: bytes never seen, or bytes that somebody else changed.
void RecordingBuilder::reconcile(const BusTransaction& t, MemoryModel::Page& page,
                                 std::uint32_t first, std::uint32_t size) {
  std::uint32_t changed_first = size, changed_last = 0;
  const std::uint32_t offset = t.address.plus32(first).offset_in_page();
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint8_t value = t.data[first + i];
    const bool changed = page.is_known(offset + i)
                             ? page.value(offset + i) != value
                             : first_read(t.address.plus32(first + i), page, value);
    if (!changed) continue;
    changed_first = std::min(changed_first, i);
    changed_last = i;
  }
  // Bytes between two changed ones belong to the event too: they hold what they held.
  if (changed_first < size) add_external(t, page, first + changed_first, first + changed_last);
  put(page, offset, std::span(t.data).subspan(first), size);
}

/// Puts a byte read for the first time since the start into the image. Returns whether somebody
/// changed it since it was seen before the start. Without a cache that does not matter: nobody can
/// have read it since, so it may as well have changed before the start.
bool RecordingBuilder::first_read(PhysAddr address, MemoryModel::Page& page, std::uint8_t value) {
  std::uint8_t initial = value;
  if (has_cache() && !before_.empty()) initial = before_.byte(address).value_or(value);
  set_image(address, page, initial);
  return initial != value;
}

void RecordingBuilder::set_image(PhysAddr address, MemoryModel::Page& page, std::uint8_t value) {
  if (page.image == nullptr) page.image = &recording_.image.page(address.page());
  page.image->data[address.offset_in_page()] = value;
  page.image->valid.set(address.offset_in_page());
}

void RecordingBuilder::add_external(const BusTransaction& t, const MemoryModel::Page& page,
                                    std::uint32_t first, std::uint32_t last) {
  const PhysAddr address = t.address.plus32(first);
  // Several writers may have changed these bytes: the window that holds them all.
  std::uint32_t epoch = clock_.epoch();
  for (std::uint32_t i = first; i <= last; ++i) {
    epoch = std::min(epoch, model_.last_access(page, t.address.plus32(i).offset_in_page()));
  }
  const auto from = t.data.begin() + first;
  const auto to = t.data.begin() + last + 1;
  // Reads that follow each other directly leave no room for an access between them: one event.
  if (!recording_.external_writes.empty() && last_external_end_ == t.index) {
    const ExternalWrite& previous = recording_.external_writes.back();
    if (previous.address.plus32(static_cast<std::uint32_t>(previous.data.size())) == address) {
      recording_.external_writes.change_back(
          [&](ExternalWrite& write) { write.data.insert(write.data.end(), from, to); });
      last_external_end_ = t.index + 1;
      return;
    }
  }
  ExternalWrite event;
  event.address = address;
  event.data.assign(from, to);
  event.position_known = t.has(kPositionKnown);
  event.position = t.position;
  if (!event.position_known && t.op == BusOp::code_read) {
    const std::optional<Position> after = begun_from(t, first, last);
    event.position_known = after.has_value();
    event.position = after.value_or(Position{});
  }
  event.anchor = counts_;
  event.window_begin = clock_.begin_of(epoch);
  event.transaction = t.index;
  recording_.external_writes.push_back(event);
  last_external_end_ = t.index + 1;
}

/// For a pin-level capture, where no item of the anchor says so: what was in the prefetch queue.
void RecordingBuilder::note_start(const BusTransaction& t) {
  constexpr std::size_t kMost = 4096;
  if (!t.has(kPositionKnown) || t.has(kBranchTarget)) return;
  if (begun_.counts != counts_ || begun_.starts.size() == kMost) begun_.starts.clear();
  begun_.counts = counts_;
  begun_.starts.push_back(t);
}

/// A fetch shows other bytes than those that an instruction begun before was made of: it was
/// somebody else who wrote them after that instruction. Returns where the next one begins.
std::optional<Position> RecordingBuilder::begun_from(const BusTransaction& t, std::uint32_t first,
                                                     std::uint32_t last) const {
  if (begun_.counts != counts_) return std::nullopt;
  for (auto start = begun_.starts.rbegin(); start != begun_.starts.rend(); ++start) {
    for (std::uint32_t i = first; i <= last; ++i) {
      const std::uint32_t at = t.address.plus32(i).minus32(start->address);
      if (at < start->size && start->data[at] != t.data[i]) {
        return Position{start->position.instruction + 1, 0};
      }
    }
  }
  return std::nullopt;
}

void RecordingBuilder::add_io_read(const BusTransaction& t) {
  IoRead read;
  read.port = static_cast<std::uint16_t>(t.address.value);
  read.size = t.size;
  read.value = t.value();
  read.position_known = t.has(kPositionKnown);
  read.position = t.position;
  read.transaction = t.index;
  recording_.io_reads.push_back(read);
}

/// Everything but memory, and what it counts for.
void RecordingBuilder::add_other(const BusTransaction& t) {
  RecordingTotals& totals = recording_.totals;
  switch (t.op) {
    case BusOp::code_read:
    case BusOp::data_read:
    case BusOp::data_write:
      break;
    case BusOp::io_read:
      add_io_read(t);
      ++totals.io_reads;
      counts_.io += t.size;
      break;
    case BusOp::io_write:
      ++totals.io_writes;
      counts_.io += t.size;
      break;
    case BusOp::interrupt_acknowledge:
      add_interrupt(t, Interrupt::Kind::external);
      ++totals.interrupts;
      ++counts_.interrupts;
      break;
    case BusOp::instruction_start:
      if (!t.has(kPrefix) && !t.has(kBranchTarget)) ++totals.instruction_starts;
      note_start(t);
      break;
    case BusOp::nmi:
      add_interrupt(t, Interrupt::Kind::nmi);
      ++totals.specials;
      break;
    case BusOp::smi:
      add_interrupt(t, Interrupt::Kind::smi);
      ++totals.specials;
      break;
    case BusOp::halt:
    case BusOp::shutdown:
    case BusOp::flush:
      ++totals.specials;
      break;
    case BusOp::reset:
      if (is_reset_within(t)) {
        add_interrupt(t, kResetInterrupt);
        shut_down_at_.reset();
      }
      ++totals.specials;
      break;
  }
}

/// Calls `access` with the view of memory that suits the bytes.
template <typename Access>
inline void RecordingBuilder::with_view(const BusTransaction& t, Access access) {
  const std::uint32_t offset = t.address.offset_in_page();
  MemoryModel::Page& page = model_.page(t.address.page());
  if (MemoryModel::LinePart::fits(offset, t.size)) {
    access(page, MemoryModel::LinePart(page.line(offset), offset, t.size), 0, t.size);
  } else if (MemoryModel::BusWord::fits(offset, t.size)) [[likely]] {
    access(page, MemoryModel::BusWord(page.line(offset), offset, t.size), 0, t.size);
  } else {
    for_pieces(t, [&](std::uint32_t first, std::uint32_t size) {
      const PhysAddr address = t.address.plus32(first);
      MemoryModel::Page& its = model_.page(address.page());
      const std::uint32_t at = address.offset_in_page();
      access(its, MemoryModel::LineBytes(its.line(at), at, size), first, size);
    });
  }
}

template <typename View>
inline void RecordingBuilder::touch(const BusTransaction& t, MemoryModel::Page& page,
                                    const View& view, std::uint32_t first, std::uint32_t size) {
  const std::uint32_t epoch = std::min(clock_.epoch(), MemoryModel::kLastEpoch);
  if (model_.keeps_words()) [[likely]] {
    view.touch(epoch);
  } else {
    MemoryModel::touch_bytes(page, t.address.plus32(first).offset_in_page(), size, epoch);
  }
}

inline void RecordingBuilder::read(const BusTransaction& t) {
  saw_line_ |= t.has(kLine);
  with_view(
      t, [&](MemoryModel::Page& page, const auto& view, std::uint32_t first, std::uint32_t size) {
        if (!view.holds(std::span(t.data).subspan(first))) [[unlikely]]
          reconcile(t, page, first, size);
        touch(t, page, view, first, size);
      });
}

inline void RecordingBuilder::write(const BusTransaction& t) {
  saw_line_ |= t.has(kLine);
  saw_write_back_ |= t.has(kWriteBack);
  with_view(
      t, [&](MemoryModel::Page& page, const auto& view, std::uint32_t first, std::uint32_t size) {
        if (remembers() && !before_.empty()) keep_before(t, page, first, size);
        view.put(std::span(t.data).subspan(first));
        touch(t, page, view, first, size);
      });
}

/// A byte seen before the start and cached, or in the TLB, may have been used since, off the bus.
void RecordingBuilder::keep_before(const BusTransaction& t, MemoryModel::Page& page,
                                   std::uint32_t first, std::uint32_t size) {
  for (std::uint32_t i = first; i < first + size; ++i) {
    const PhysAddr address = t.address.plus32(i);
    if (page.is_known(address.offset_in_page())) continue;
    if (const auto initial = before_.byte(address)) set_image(address, page, *initial);
  }
}

/// The instruction a transaction belongs to is one the evidence reaches. An interrupt and a reset
/// belong to none: they say how many are complete, but not that the monitor counts at other
/// transactions. The instruction that a shutdown belongs to never completes.
inline void RecordingBuilder::count_position(const BusTransaction& t) {
  if (!t.has(kPositionKnown) || t.op == BusOp::interrupt_acknowledge || t.op == BusOp::nmi ||
      t.op == BusOp::smi || t.op == BusOp::reset) {
    return;
  }
  if (t.op == BusOp::shutdown) {
    shut_down_at_ = t.position.instruction;
    return;
  }
  // An instruction that was seen to start need not have ended.
  const bool only_started = t.op == BusOp::instruction_start;
  if (only_started) last_start_ = t.position.instruction;
  const bool begins = !only_started && !may_come_before_its_instruction(t);
  const std::uint64_t reached = t.position.instruction + (begins ? 1 : 0);
  if (!instructions_ || *instructions_ < reached) instructions_ = reached;
}

inline void RecordingBuilder::count_memory(const BusTransaction& t) {
  RecordingTotals& totals = recording_.totals;
  if (t.op == BusOp::data_write) {
    if (t.has(kWriteBack)) {
      ++totals.write_backs;
    } else {
      ++totals.writes;
      counts_.writes += t.size;
    }
    return;
  }
  if (t.op == BusOp::data_read) ++counts_.reads;
  ++(t.has(kLine) ? totals.line_fills : totals.reads);
}

inline void RecordingBuilder::add_memory(BusTransaction& t) {
  if (t.op == BusOp::data_write) {
    write(t);
    count_memory(t);
  } else {
    read(t);
    count_memory(t);
    t.data.fill(0);
  }
}

void RecordingBuilder::add(std::span<BusTransaction> transactions) {
  derive(transactions);
  if (evidence_ == nullptr) return;
  evidence_->write_all(transactions);
  if (const auto last = last_of_chunk(transactions.size()))
    hand_over_events(transactions[*last].index);
}

void RecordingBuilder::derive(std::span<BusTransaction> transactions) {
  // What memory holds lies all over the second-level cache; a few transactions ahead is in time.
  constexpr std::size_t kAhead = 12;
  for (const BusTransaction& t : transactions.first(std::min(transactions.size(), kAhead)))
    model_.prefetch(t.address);
  for (std::size_t i = 0; i < transactions.size(); ++i) {
    if (transactions.size() - i > kAhead) model_.prefetch(transactions[i + kAhead].address);
    BusTransaction& t = transactions[i];
    t.position = t.has(kPositionKnown) ? rebase(t.position) : Position{};
    if (options_.counts != CountUnit::instructions) [[unlikely]]
      keep_count(t);
    clock_.tick(counts_);
    derive(t);
  }
  recording_.totals.transactions += transactions.size();
}

/// One whose position is counted from the start.
inline void RecordingBuilder::derive(BusTransaction& t) {
  if (const auto entry = smm_.add(t, t.position, counts_)) [[unlikely]]
    add_smm_entry(*entry);
  if (smm_revision_at_) [[unlikely]]
    find_smm_revision(t);
  if (smbase_search_.active()) [[unlikely]]
    smbase_ = smbase_search_.add(t);
  if (!options_.on_chip.empty()) [[unlikely]]
    look_for_markers(t);
  if (t.is_memory()) [[likely]] {
    add_memory(t);
  } else {
    add_other(t);
  }
  count_position(t);
}

void RecordingBuilder::add(AccessRun run) {
  CITCAT_ASSERT(takes(run) && run.size() <= AccessRun::kMax);
  run.base = base_.instruction;
  derive(run);
  if (evidence_ == nullptr) return;
  evidence_->write_run(run);
  if (const auto last = last_of_chunk(run.size())) hand_over_events(run.index + *last);
}

/// Where, in what was added last, a chunk of evidence ended.
std::optional<std::size_t> RecordingBuilder::last_of_chunk(std::size_t added) const {
  const std::uint64_t behind = recording_.totals.transactions % kEvidenceChunkTransactions;
  if (behind >= added) return std::nullopt;
  return added - 1 - static_cast<std::size_t>(behind);
}

namespace {

/// Takes the first `count` out of `events`, where the one after them is of the transaction
/// `index` or an earlier one.
std::vector<Interrupt> take_first(std::vector<Interrupt>& events, std::size_t count,
                                  std::uint64_t index) {
  if (events.size() <= count || events[count].transaction > index) return {};
  const auto end = events.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Interrupt> taken(events.begin(), end);
  events.erase(events.begin(), end);
  return taken;
}
template <typename Events>
std::vector<typename Events::Event> take_first(Events& events, std::size_t count,
                                               std::uint64_t index) {
  if (events.size() <= count || events[count].transaction > index) return {};
  return events.take_first(count);
}

}  // namespace

/// Those of transactions up to `index`, which ends a chunk of evidence: an archive is the same in
/// whatever pieces transactions are added. The last event of each sort may still grow or be told
/// more of; an SMI, until its revision was seen.
void RecordingBuilder::hand_over_events(std::uint64_t index) {
  const std::size_t most = evidence_->events_at_a_time();
  if (most == 0) return;
  EvidenceWriter::Events events;
  if (!smm_revision_at_) events.interrupts = take_first(recording_.interrupts, most, index);
  events.external_writes = take_first(recording_.external_writes, most, index);
  events.io_reads = take_first(recording_.io_reads, most, index);
  EventCounts& counts = recording_.handed_over;
  counts.interrupts += events.interrupts.size();
  counts.external_writes += events.external_writes.size();
  counts.io_reads += events.io_reads.size();
  const bool some =
      !events.interrupts.empty() || !events.external_writes.empty() || !events.io_reads.empty();
  if (some) evidence_->write_events(events);
}

/// What memory holds where the run accesses it.
void RecordingBuilder::find_lines(const AccessRun& run) {
  if (run.columns != nullptr) {
    model_.find_lines(std::span(run.columns->address).subspan(run.column, run.size()), lines_);
    wide_.prepare(run);
    return;
  }
  for (std::size_t i = 0; i < run.size(); ++i) {
    lines_[i] = &model_.line(PhysAddr{run.record(i).address});
    __builtin_prefetch(lines_[i], 1);
  }
}

void RecordingBuilder::derive(const AccessRun& run) {
  find_lines(run);
  for (std::size_t i = 0; i < run.size();) {
    const std::size_t left = std::min<std::size_t>(run.size() - i, clock_.begin(counts_));
    const std::size_t common = is_common(run) ? derive_common(run, i, left) : 0;
    clock_.pass(common);
    i += common;
    if (common == left) continue;
    BusTransaction t = run.at(i++);
    clock_.pass(1);
    derive(t);
  }
  recording_.totals.transactions += run.size();
  if (run.counted) {
    const std::uint64_t reached = run.highest - run.base + (begins_last(run) ? 1 : 0);
    instructions_ = std::max(instructions_.value_or(0), reached);
  }
}

/// Whether the run shows that its last instruction has begun.
bool RecordingBuilder::begins_last(const AccessRun& run) {
  for (std::size_t i = run.size(); i-- > 0;) {
    const bool last = run.record(i).instructions == run.highest;
    if (last && !may_come_before_its_instruction(run.at(i))) return true;
  }
  return false;
}

/// Nothing is going on that wants to see every transaction.
bool RecordingBuilder::is_common(const AccessRun& run) const {
  return !smm_.watches() && !smm_revision_at_ && !smbase_search_.active() &&
         (saw_line_ || (run.flags & kLine) == 0);
}

/// Those of `count` before the first that shows something new.
std::size_t RecordingBuilder::derive_common(const AccessRun& run, std::size_t first,
                                            std::size_t count) {
  // A write to bytes that are not known may hide what a cache or the TLB kept of them from before.
  const bool keeps = remembers() && !before_.empty();
  const std::uint32_t epoch = std::min(clock_.epoch(), MemoryModel::kLastEpoch);
  if (run.columns == nullptr) return derive_each(run, first, count, epoch, keeps);
  const std::size_t taken = wide_.put(run, lines_, first, count, epoch, keeps);
  count_accesses(wide_.totals(run, first, taken));
  return taken;
}

/// The same where there are no vectors for several. No condition in here but one: what kind of
/// access comes next cannot be foretold.
std::size_t RecordingBuilder::derive_each(const AccessRun& run, std::size_t first,
                                          std::size_t count, std::uint32_t epoch, bool keeps) {
  using Words = MemoryModel::Words;
  using Notes = MemoryModel::Notes;
  const Words kept = Words{} + (keeps ? ~std::uint64_t{0} : 0);
  const Notes epochs = Notes{} + epoch;
  std::uint64_t totals = 0, written = 0;
  std::size_t i = 0;
  for (; i < count; ++i) {
    const RunKind& kind = run.kind(first + i);
    const auto bytes = run.records.subspan((first + i) * kBusRecordBytes, kBusRecordBytes);
    const std::uint32_t address = run.record(first + i).address;
    const std::uint32_t at = address % MemoryModel::HalfLine::kBytes;
    // The data where they belong in the half line: what is around them in the record is covered.
    const MemoryModel::HalfLine half(
        *lines_[first + i], address, MemoryModel::load_all<Words>(&kind.cover[kBusRecordData - at]),
        MemoryModel::load_all<Words>(&bytes[kBusRecordBytes - kBusRecordData - at]));
    const Words reads = MemoryModel::load_all<Words>(kind.reads.data());
    const Words news = (half.differ() & reads) | (half.unknown() & (reads | kept));
    const bool watched = (address & kind.watch_mask) == kind.watch_value;
    if ((news[0] | news[1] | (watched ? 1U : 0U)) != 0) break;
    half.put_and_touch(epochs);
    totals += kind.totals;
    written += kind.written;
  }
  const auto total = [totals](RunTotal which) { return totals >> which & 0xffff; };
  const std::uint64_t reads = total(kReads), fills = total(kLineFills), writes = total(kWrites);
  count_accesses({reads, fills, writes, i - reads - fills - writes, total(kDataReads), written});
  return i;
}

void RecordingBuilder::count_accesses(const AccessTotals& more) {
  saw_write_back_ |= more.write_backs != 0;
  recording_.totals.reads += more.reads;
  recording_.totals.line_fills += more.line_fills;
  recording_.totals.writes += more.writes;
  recording_.totals.write_backs += more.write_backs;
  counts_.reads += more.data_reads;
  counts_.writes += more.written;
}

Recording RecordingBuilder::finish() {
  if (remembers()) {
    for (const auto& [number, known] : before_.pages()) {
      MemoryModel::Page& page = model_.page(number);
      for (std::uint32_t i = 0; i < kPageSize; ++i) {
        if (!known->valid[i] || page.is_known(i)) continue;
        set_image(PhysAddr{number * kPageSize + i}, page, known->data[i]);
      }
    }
  }
  recording_.bus = options_.bus;
  if (saw_write_back_) {
    recording_.bus.form = CacheForm::write_back;
  } else if (saw_line_ && recording_.bus.form == CacheForm::none) {
    recording_.bus.form = CacheForm::write_through;
  }
  recording_.instructions = instructions_;
  if (shut_down_at_ && instructions_.value_or(0) <= *shut_down_at_ + 1) {
    recording_.instructions = shut_down_at_;
    recording_.end = Position{*shut_down_at_, 0};
  } else if (last_start_ && instructions_ == *last_start_ + 1) {
    // Pins show an instruction to be complete by the start of the next.
    recording_.end = Position{*last_start_, 0};
  }
  Recording done = std::move(recording_);
  *this = RecordingBuilder(options_, evidence_);
  return done;
}

}  // namespace citcat
