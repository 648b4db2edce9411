#include "replay/verify/comparison.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "events/startup_event.h"
#include "replay/verify/doubts.h"

namespace citcat {

namespace {

/// How many transactions ahead of what is compared memory is asked for: some thousand of the host's
/// instructions.
constexpr std::size_t kFetchedAhead = 4;

/// Blocks can be compared where the monitor counts the traffic.
bool is_plain(const Recording& recording, const VerifierOptions& options) {
  const bool whole_addresses = recording.bus.address_mask == 0xffffffff;
  const bool counted = recording.instructions && recording.totals.instruction_starts == 0;
  return options.plain && whole_addresses && counted;
}

/// No part of a line matters by itself, unless somebody has reviewed it.
bool joins_lines(const Recording& recording, const VerifierOptions& options) {
  return is_plain(recording, options) && options.policy.waived.empty();
}

bool compares_reads(const Recording& recording, const VerifierOptions& options) {
  const bool has_reads = recording.totals.reads + recording.totals.line_fills != 0;
  return options.reads && has_reads && recording.instructions;
}

/// The pins that report every instruction, those of an 8086 in maximum mode, tell reads of data
/// from fetches; and no page walk comes between them.
bool shows_reads_in_order(const Recording& recording, const VerifierOptions& options) {
  return options.reads && recording.totals.instruction_starts != 0 &&
         recording.bus.form == CacheForm::none && cpu_traits(recording.initial.model).sixteen_bit;
}

const Schedule& schedule_of(const Recording& recording, const VerifierOptions& options) {
  return options.schedule != nullptr ? *options.schedule : recording.schedule();
}

}  // namespace

ComparisonProgress::ComparisonProgress(const Recording& recording, EvidenceCursor begin)
    : cursor(begin),
      ports(recording.bus, recording.initial.model),
      fetches(recording.bus.address_mask) {}
ComparisonProgress::ComparisonProgress(const ComparisonProgress&) = default;
ComparisonProgress::ComparisonProgress(ComparisonProgress&&) = default;
ComparisonProgress& ComparisonProgress::operator=(const ComparisonProgress&) = default;
ComparisonProgress& ComparisonProgress::operator=(ComparisonProgress&&) = default;
ComparisonProgress::~ComparisonProgress() = default;

Comparison::Comparison(const Recording& r, std::unique_ptr<EvidenceReader> reader,
                       const VerifierOptions& options)
    : Comparison(r, take_in(r, std::move(reader), options), options) {}

Comparison::Comparison(const Recording& r, Intake intake, const VerifierOptions& options)
    : ComparisonProgress(r, {*intake.reader, joins_lines(r, options)}),
      recording(r),
      policy(options.policy),
      plain(is_plain(r, options)),
      write_back(r.bus.form == CacheForm::write_back),
      orders_reads(shows_reads_in_order(r, options)),
      to(options.to),
      times(options.times),
      evidence(std::move(intake.reader)),
      ahead(intake.ahead),
      final_memory(r.image, schedule_of(r, options),
                   {.keeps_model = options.final_memory && !write_back, .knows_lines = !plain}),
      external(schedule_of(r, options), r.initial.ram_bytes) {
  if (!compares_reads(r, options)) return;
  const Schedule* const schedule = ahead == nullptr ? &schedule_of(r, options) : nullptr;
  reads = std::make_unique<ReadMatcher>(r, schedule, plain);
  if (options.begin != nullptr) begin_at(*options.begin);
}

ComparisonPlace Comparison::place() const {
  CITCAT_ASSERT(has_places());
  return {*this,       final_memory.progress(), external.seen(), reads->progress(), images,
          interrupted, ahead->given()};
}

void Comparison::begin_at(const ComparisonPlace& place) {
  CITCAT_ASSERT(has_places());
  static_cast<ComparisonProgress&>(*this) = place.progress;
  cursor.read_from(*evidence);
  final_memory.restore(place.final_memory);
  external.restore(place.external_changes);
  reads->go_on_from(place.reads);
  images = place.images;
  interrupted = place.interrupted;
}

/// Evidence as it is to be read. Where every store is on the bus there is so much of it that what
/// crosses from one processor's cache to the other's takes longer than taking it in; then only a
/// part of a run has what is before it taken in ahead.
Comparison::Intake Comparison::take_in(const Recording& r, std::unique_ptr<EvidenceReader> reader,
                                       const VerifierOptions& options) {
  const bool gains = r.bus.form == CacheForm::write_back;
  if (!options.ahead || !(gains || options.is_part()) || !is_plain(r, options) ||
      !compares_reads(r, options)) {
    return {std::move(reader)};
  }
  auto ahead = std::make_unique<EvidenceAhead>(
      std::move(reader), r.image, schedule_of(r, options),
      EvidenceAhead::Options{.joins_lines = joins_lines(r, options),
                             .on_a_thread = gains,
                             .passed_over = options.begin ? options.begin->handed_out() : 0,
                             .from = options.from});
  EvidenceAhead* const same = ahead.get();
  return {std::move(ahead), same};
}

// ---------------------------------------------------------------------------------------------
// The evidence

bool Comparison::read_ahead() {
  if (!cursor.read()) return false;
  const std::span<const BusTransaction> upcoming = cursor.upcoming();
  if (upcoming.size() > kFetchedAhead) fetch_ahead(upcoming[kFetchedAhead]);
  return true;
}

/// `t` comes before long: what both sides hold there is fetched from memory ahead.
void Comparison::fetch_ahead(const BusTransaction& t) const {
  if (!t.is_memory()) return;
  if (reads != nullptr) reads->will_capture(t);
  __builtin_prefetch(memory().host(t.address));
}

bool Comparison::pull() {
  if (!look_ahead()) return false;
  if (plain && cursor.goes_back()) {
    stop_with({"counts of instructions that go back", cursor.next(), ""}, machine->position());
  }
  const BusTransaction& t = cursor.take();
  // At pins a processor is seen to fetch what it has just fetched ahead, after a jump to it.
  const bool by_monitor = recording.instructions && recording.totals.instruction_starts == 0;
  if (by_monitor && (ahead != nullptr ? ahead->context().repeated : repeated.observe(t))) {
    stop_with({RepeatedTransfer::kReason, t, ""}, machine->position());
  }
  // The replay may not be there yet.
  if (orders_reads && fetches.observe(t) && !from_elsewhere) from_elsewhere = t.index;
  sort_in(t);
  return true;
}

void Comparison::sort_in(const BusTransaction& t) {
  if (times != nullptr) times->captured(t);
  if (reads != nullptr) {
    const bool reading = t.op == BusOp::data_read || t.op == BusOp::code_read;
    if (reading && ahead != nullptr) {
      reads->expect(t, ahead->context());
    } else if (reading) {
      reads->expect(t, cursor.parts());
    } else if (t.op == BusOp::data_write && ahead == nullptr) {
      reads->captured_write(t);
    }
  }
  switch (t.op) {
    case BusOp::data_write:
      if (!t.has(kWriteBack)) {
        writes.expect(t);
      } else {
        lines.expect(t, cursor.parts());
        if (!t.has(kPositionKnown)) check_window(window_of(t.address));
      }
      break;
    case BusOp::io_read:
    case BusOp::io_write:
      ports.expect(t);
      break;
    case BusOp::halt:
    case BusOp::shutdown:
    case BusOp::flush:
      specials.expect(t);
      break;
    case BusOp::instruction_start:
      starts.expect(t);
      break;
    case BusOp::interrupt_acknowledge:
      // A start by SIPI is delivered as no interrupt is.
      if (!is_startup(t)) ++interrupts_captured;
      break;
    case BusOp::data_read:
      if (orders_reads) ordered_reads.expect(t);
      final_memory.captured_read(t);
      break;
    default:
      break;
  }
}

void Comparison::pull_through(Position position) {
  while (!at_barrier() && !cursor.is_beyond(position) && writes.waiting() < WriteMatcher::kWindow &&
         pull()) {
  }
}

bool Comparison::is_used_up() const {
  // Where positions are known the replay ends by them; without, where everything has been seen.
  return cursor.at_end() && !cursor.counted() && ports.waiting() == 0 && specials.empty() &&
         !lines.has_windows() && writes.all_made();
}

bool Comparison::made_all() const {
  return cursor.at_end() && ports.waiting() == 0 && specials.empty() && writes.all_shown_made();
}

bool Comparison::is_over(Position now) {
  if (beyond || cursor.counted()) return false;
  if (cursor.at_end() && lines.has_windows() && ports.waiting() == 0 &&
      now.instruction > progress_at + kMaxIdle) {
    settle_windows(now);
  }
  if (held() != 0) return false;
  // What a cache hides goes on behind the last that must be seen, as far as the capture counts it.
  // Pins that report each instruction show the end themselves.
  const bool goes_on = recording.instructions && now.instruction < *recording.instructions;
  if (goes_on && recording.totals.instruction_starts == 0) return false;
  if (!at_barrier()) pull();
  return final_memory.ended_within_instruction() || (starts.empty() && is_used_up());
}

// ---------------------------------------------------------------------------------------------
// Reads

void Comparison::follow_reads(Position now) {
  const std::uint64_t before = reads->instruction();
  const bool waits = !cursor.is_known() || !cursor.next().has(kPositionKnown) ||
                     cursor.next().position.instruction < now.instruction;
  const auto reach = [&](std::uint64_t instruction) {
    while (!cursor.is_beyond({instruction, 0}) && pull()) {
    }
    return cursor.is_beyond({instruction, 0});
  };
  if (!waits && !reads->waits_before(now.instruction)) {
    reads->begin(now.instruction);
  } else if (before == ReadMatcher::kNone || !reach(before)) {
    reads->skip(now.instruction);
  } else {
    if (!lines.empty()) adopt_lines(before);
    require(reads->settle(now.instruction, memory()), {before, 0});
  }
  result.totals.reads = reads->compared();
  reach(now.instruction);
}

// ---------------------------------------------------------------------------------------------
// Lines

void Comparison::check_lines(Position next) {
  lines.observe_through(next, memory(),
                        [this](const LineMatcher::Pending& line) { line_agreed(line); });
}

bool Comparison::check_window(std::uint64_t window) {
  return lines.observe_window(window, memory(),
                              [this](const LineMatcher::Pending& line) { line_agreed(line); });
}

void Comparison::expire_lines(Position now, bool in_repeat) {
  const std::size_t due = lines.due(now, in_repeat);
  for (std::size_t i = 0; i < due; ++i) {
    if (!adopt(lines[i])) {
      refuse(lines[i], "a line written back holds other bytes than the replay's memory", now);
    }
  }
  if (!lines.empty()) check_lines(now);
}

void Comparison::adopt_lines(std::uint64_t last) {
  const Position end{last, ~std::uint32_t{0}};
  const std::size_t due = lines.due(end, false);
  for (std::size_t i = 0; i < due; ++i)
    if (!adopt(lines[i])) return;
  if (due != 0) check_lines(end);
}

void Comparison::settle_windows(Position now) {
  while (lines.has_windows()) {
    LineMatcher::Pending line = LineMatcher::pending_of(lines.any_in_windows());
    if (check_window(window_of(line.t.address))) continue;
    LineMatcher::observe(line, memory());
    if (adopt(line)) continue;
    refuse(line, "a line written back holds other bytes than the replay's memory ever did", now);
  }
}

void Comparison::refuse(const LineMatcher::Pending& line, const char* reason, Position now) {
  ++result.totals.write_backs.checked;
  stop_with({reason, line.t, memory_text(memory(), line.t.address, line.t.size)}, now);
}

// ---------------------------------------------------------------------------------------------
// What agrees, and what is taken over

void Comparison::write_agreed(const BusTransaction& t) {
  VerifyTotals& totals = result.totals;
  ++totals.writes.checked;
  ++totals.writes.equal;
  totals.evidence_bytes += t.size;
  result.last_agreed = t.index;
  if (times != nullptr) times->agreed(t, machine->position());
  final_memory.write_agreed(t);
}

void Comparison::line_agreed(const LineMatcher::Pending& line) {
  if (doubts != nullptr && !doubts->decide(line.t.index, line.taken_over)) {
    stop_with({"other flags of a line were taken over", line.t, ""}, machine->position());
  }
  // It may have been given up before its instruction.
  if (line.t.position.instruction >= to) return;
  VerifyTotals& totals = result.totals;
  totals.write_backs.checked += line.parts;
  totals.write_backs.equal += line.parts;
  totals.evidence_bytes += line.t.size;
  result.last_agreed = line.t.index;
  final_memory.line_agreed(line.t);
  images.shown(line.t.address, line.t.size);
  undefined.line_agreed(line.t, memory());
}

bool Comparison::is_waived(std::uint64_t transaction) const {
  return std::binary_search(policy.waived.begin(), policy.waived.end(), transaction);
}

void Comparison::take_over(bool write, PhysAddr a, const std::uint8_t& byte) {
  machine->correct(a, {&byte, 1});
  result.adoptions.push_back({machine->position(), write, a, byte});
}

bool Comparison::adopt(WriteMatcher::Pending& pending, PhysAddr a, std::uint8_t value,
                       std::uint8_t bits) {
  const std::uint8_t& shown = pending.t.data[a.minus32(pending.t.address)];
  const bool may = !policy.strict && ((shown ^ value) & ~bits) == 0;
  if (!may && !is_waived(pending.t.index)) return false;
  take_over(true, a, shown);
  if (!pending.adopted) ++result.totals.adopted;
  pending.adopted = true;
  return true;
}

/// For a plain comparison: true where memory now holds what the line shows, except for flags in
/// images. What a line shows of an image that has been overwritten must not be taken for the one
/// that did.
bool Comparison::shows_images_alone(const LineMatcher::Pending& line) const {
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    const PhysAddr at = line.t.address.plus32(i);
    const bool equal = memory().defined_byte(at) == line.t.data[i];
    if (equal) continue;
    if (policy.strict || !images.explain(at, line.t.data[i], memory())) return false;
  }
  return true;
}

/// What has not been seen equal differs in bits that no manual defines.
bool Comparison::shows_undefined_bits(const LineMatcher::Pending& line) const {
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    if ((line.unmatched >> i & 1) == 0) continue;
    if (!may_differ(line.t.address.plus32(i), line.t.data[i])) return false;
  }
  return true;
}

bool Comparison::looks_closely(Position now) {
  if (!plain) return true;
  if (doubts == nullptr || !doubts->is_close(now.instruction)) return false;
  if (const std::size_t stretch = doubts->stretch(); stretch != stretch_) {
    // What was followed before has not been followed since.
    undefined.forget_bytes();
    stretch_ = stretch;
  }
  return true;
}

bool Comparison::excuses(LineMatcher::Pending& line) {
  const Position now = machine->position();
  if (plain && shows_images_alone(line)) return true;
  if (looks_closely(now) && shows_undefined_bits(line)) return true;
  const bool other_flags = (line.unmatched & ~line.other_flags) == 0;
  if (doubts == nullptr || policy.strict || !other_flags || !doubts->put_off(line.t.index, now))
    return false;
  // A line is seldom given up after the store: what was overwritten is not taken over.
  line.unmatched &= ~line.overwritten;
  return true;
}

/// What has not been seen equal of the line is taken over, where it may differ.
bool Comparison::adopt(LineMatcher::Pending& line) {
  if (!is_waived(line.t.index) && !excuses(line)) return false;
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    if ((line.unmatched >> i & 1) != 0) take_over(false, line.t.address.plus32(i), line.t.data[i]);
  }
  line.taken_over = line.unmatched;
  const std::uint32_t part = line.t.size / line.parts;
  for (std::uint32_t first = 0; first < line.t.size; first += part) {
    if ((line.unmatched >> first & all_bytes(part)) != 0) ++result.totals.adopted;
  }
  return true;
}

// ---------------------------------------------------------------------------------------------

/// A processor that halted or shut down for good makes no other special cycle, whatever the capture
/// counts for it.
void Comparison::require_rest(Position end) {
  if (!machine->halted() && !machine->shut_down()) return;
  while (specials.empty() && pull()) {
  }
  if (const BusTransaction* const left = specials.first()) {
    require(Mismatch{"the processor made a special cycle after the replay halted or shut down",
                     *left, machine->shut_down() ? "shutdown" : "HLT"},
            end);
  }
}

void Comparison::end(Position end) {
  while (pull() && !cursor.is_beyond(end)) {
  }
  final_memory.end();
  require(writes.left_before(end), end);
  require(ports.left_before(end), end);
  if (orders_reads) require(ordered_reads.left_before(end), end);
  require(specials.left_before(end), end);
  require_rest(end);
  require(starts.left_before(end, result), end);
  // Where an interrupt is due there, its handler comes first.
  const bool undisturbed = interrupts_captured == interrupts_delivered && end.iteration == 0;
  if (orders_reads && undisturbed) {
    const PhysAddr next{machine->engine().segment_base(kCs) + machine->engine().eip()};
    require(starts.goes_on_elsewhere(end, memory().captured(next)), end);
  }
}

}  // namespace citcat
