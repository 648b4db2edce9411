#include "capture/import/importer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "capture/bus/hex.h"
#include "capture/bus/side_values.h"
#include "capture/bus/spin_loop.h"
#include "events/completed_instructions.h"
#include "events/machine/cpu_traits.h"
#include "events/startup_event.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "formats/io/log.h"

namespace citcat {
namespace {

/// EFER says that long mode is active (LMA: AMD64 manual vol. 2, 3.1.7), whatever the processor is
/// taken for.
bool was_in_long_mode(const CpuState& state) {
  constexpr std::uint32_t kEfer = 0xc0000080;
  constexpr std::uint64_t kActive = 1u << 10;
  return std::any_of(state.msrs.begin(), state.msrs.end(), [&](const Msr& msr) {
    return msr.index == kEfer && (msr.value & kActive) != 0;
  });
}

const Logger logger("import");

// A state dump is over when this many transactions went by without a write into its window; as many
// of the recording's first are looked at to judge their counts.
constexpr std::size_t kLookAhead = 4096;
/// A loop longer than this many transactions is taken for the machine's work.
constexpr std::size_t kMaxSpins = std::size_t{1} << 20;
/// Transactions that are looked at and derived while they are in the first-level cache.
constexpr std::size_t kAtATime = 256;

/// `clock_hz`: the rate of the capture's clocks, 0 if it is not known.
std::string options_text(const ImportOptions& options, double clock_hz) {
  nlohmann::ordered_json text = nlohmann::ordered_json::object();
  if (options.start) text["start"] = where_text(*options.start);
  if (options.stop) text["stop"] = where_text(*options.stop);
  if (options.segment.value_or(0) != 0) text["segment"] = *options.segment;
  if (is_known(options.capture.cpu)) text["cpu"] = cpu_model_name(options.capture.cpu);
  if (!options.initial_state_path.empty() || options.initial_state) text["initial_state"] = true;
  if (!options.capture.internal_path.empty()) text["internal"] = true;
  if (options.ignore_counts == IgnoreCounts::all) text["ignore_counts"] = "all";
  if (options.ignore_counts == IgnoreCounts::all_but_interrupts) {
    text["ignore_counts"] = "all-but-interrupts";
  }
  if (options.counts) text["counts"] = count_unit_name(*options.counts);
  for (const OnChipMarker& marker : options.on_chip) {
    text["on_chip"].push_back(on_chip_marker_text(marker));
  }
  if (clock_hz > 0) text["clock_hz"] = clock_hz;
  return json_text(text);
}

}  // namespace

Importer::Importer(TransactionStream& stream, const ImportOptions& options,
                   EvidenceWriter* evidence)
    : stream_(stream),
      options_(options),
      builder_({stream.info().bus, options.on_chip, starts_with_tlb(), counts()}, evidence),
      start_(options.start),
      stop_(options.stop),
      audit_(options.ignore_counts == IgnoreCounts::none                 ? Counting::all
             : options.ignore_counts == IgnoreCounts::all_but_interrupts ? Counting::interrupts
                                                                         : Counting::none) {}

/// The recording begins where a TLB may hold entries: no driver has emptied it.
bool Importer::starts_with_tlb() const {
  const CpuModel declared = options_.capture.cpu;
  const CpuModel model = is_known(declared) ? declared : stream_.info().cpu;
  return options_.start && !cpu_traits(model).sixteen_bit;
}

const std::string& Importer::name() const {
  static const std::string kCapture = "capture";
  return stream_.info().files.empty() ? kCapture : stream_.info().files.front().name;
}

void Importer::select_segment() {
  for (std::uint32_t i = 0; i < options_.segment.value_or(0); ++i) {
    if (!stream_.next_segment()) {
      throw UsageError("--segment " + std::to_string(*options_.segment) +
                       ": the segments of the capture are 0 to " + std::to_string(i));
    }
  }
}

/// Where the state comes from decides where the recording starts.
void Importer::find_state() {
  if (options_.initial_state) {
    state_ = options_.initial_state;
  } else if (!options_.initial_state_path.empty()) {
    state_ = load_state_json(options_.initial_state_path);
    require_state_of_this_processor();
  } else if (options_.recovers_state) {
    state_.emplace();
  } else if (!options_.start) {
    state_ = stream_.initial_state();
  } else {
    const bool at_interrupt = options_.start->kind == Where::Kind::interrupt;
    throw UsageError("--start " + where_text(*options_.start) +
                     " needs the processor's state there: give it with --initial-state, or have "
                     "it worked out from the bus with " +
                     (at_interrupt ? "" : "--start interrupt:0 ") + "--recover-state");
  }
  if (state_) {
    skip_to_start();
  } else {
    find_dump();
  }
}

/// Registers of another processor mean something else, or are not there.
void Importer::require_state_of_this_processor() const {
  const CpuModel of_state = state_->model;
  const CpuModel asked = options_.capture.cpu;
  const CpuModel wanted = is_known(asked) ? asked : stream_.info().cpu;
  if (!is_known(of_state) || !is_known(wanted) || of_state == wanted) return;
  throw FormatError(options_.initial_state_path, 0,
                    "expected the state of the processor " + std::string(cpu_model_name(wanted)) +
                        (is_known(asked) ? " (--cpu)" : ", as the capture shows it") +
                        ", found one of the processor " + std::string(cpu_model_name(of_state)));
}

/// A transaction before the start.
void Importer::pass(const BusTransaction& t) {
  stop_.reached(t);
  prefix_seen_ |= !t.has(kStateWindow);
  builder_.observe(t);
}

void Importer::pass_ahead() {
  for (const BusTransaction& t : ahead_) pass(t);
  ahead_.clear();
}

void Importer::skip_to_start() {
  if (!options_.start) return;
  BusTransaction t;
  while (next(t)) {
    if (start_.reached(t)) {
      ahead_.push_back(t);
      return;
    }
    pass(t);
  }
  throw UsageError("--start " + where_text(*options_.start) + " is beyond the capture, which has " +
                   std::to_string(stream_.read()) + " transactions");
}

/// Reads until the state dump is over. What follows it is left in ahead_. False when the segment
/// ends before that.
bool Importer::search_dump() {
  BusTransaction t;
  while (next(t)) {
    if (dump_.take(t)) {
      pass_ahead();
      by_dump_ = true;
      if (t.has(kPositionKnown)) {
        if (!first_window_) first_window_ = t.position;
        last_window_ = t.position;
      }
      if (dump_.started()) {
        take_dump();
        return true;
      }
    } else if (!by_dump_) {
      pass(t);
    } else {
      ahead_.push_back(t);
      if (ahead_.size() >= kLookAhead && dump_ended()) {
        take_dump();
        return true;
      }
    }
  }
  if (!dump_.found() || dump_.expects_marker()) return false;
  take_dump();
  return true;
}

void Importer::find_dump() {
  if (search_dump()) return;
  throw FormatError(name(), 0, missing_dump());
}

/// Why search_dump() returned false.
std::string Importer::missing_dump() const {
  if (dump_.found())
    return "the driver dumped the state, but the start marker that should follow was not found";
  const std::string& share = stream_.info().share;
  if (!share.empty()) return "expected a state dump of " + share + ", found none";
  return "expected a state dump, found none in " + std::to_string(stream_.read()) +
         " transactions: give the processor's state with --initial-state, or, if there is an "
         "interrupt, let citcat work it out from the bus with --start interrupt:0 --recover-state";
}

/// Called when nothing was written into the window for a while: was that the dump?
bool Importer::dump_ended() {
  const bool found = dump_.found();
  if (found && !dump_.expects_marker()) return true;
  by_dump_ = found;
  pass_ahead();
  return false;
}

void Importer::take_dump() {
  std::optional<DumpedState> dumped = dump_.take_state();
  if (!dumped) {
    throw FormatError(
        name(), 0,
        "expected a state dump of layout version 1 or 2, found one that cannot be read: "
        "give the processor's state with --initial-state");
  }
  state_ = std::move(dumped->state);
  for (std::string& text : dumped->warnings) warn(std::move(text));
}

void Importer::look_ahead() {
  BusTransaction t;
  while (ahead_.size() < kLookAhead && next(t)) ahead_.push_back(t);
  const std::vector<BusTransaction> first(ahead_.begin(), ahead_.end());
  // Counts in other units cannot be judged: nothing is known about them.
  if (counts_instructions()) audit_.judge(first, stream_.at_end());
}

/// Position zero is the instruction after the dump. A monitor that writes the dump itself stops the
/// count meanwhile; a driver's stores are instructions, and the last one is complete.
std::optional<Position> Importer::base_of_dump() const {
  if (!last_window_ || !first_window_) return std::nullopt;
  const bool counted_on = first_window_->instruction != last_window_->instruction;
  return Position{last_window_->instruction + (counted_on || dump_.started() ? 1 : 0), 0};
}

std::optional<Position> Importer::base_of_start() const {
  if (options_.start->kind == Where::Kind::instruction) {
    return Position{options_.start->number, 0};
  }
  const auto known = [&](auto wanted) -> std::optional<Position> {
    for (BusTransaction t : ahead_) {
      PositionAudit(audit_).apply(t);
      if (t.has(kPositionKnown) && wanted(t)) return t.position;
    }
    return std::nullopt;
  };
  const std::uint64_t first = ahead_.front().index;
  if (const auto here = known([&](const auto& t) { return t.index == first; })) return here;
  // The first instruction that starts after the place is the first of the recording.
  return known([](const auto& t) { return t.op == BusOp::instruction_start; });
}

/// Counts of something else than instructions stay counts: those of interrupts, for a search to
/// place them by. Without the count at the start they say how far one is from the other.
void Importer::find_base_of_counts() {
  std::optional<Position> base;
  if (by_dump_) {
    // The driver's last store into its window is neither a branch nor the end of a block.
    if (last_window_ && counts() != CountUnit::completions) base = last_window_;
  } else if (options_.start && !ahead_.empty()) {
    base = base_of_start();
  } else if (!ahead_.empty() && ahead_.front().has(kPositionKnown)) {
    base = ahead_.front().position;
  }
  if (base) {
    base_ = {base->instruction, 0};
  } else if (prefix_seen_ || by_dump_) {
    base_known_ = false;
    builder_.start_uncounted();
  }
  audit_ = PositionAudit(Counting::interrupts);
  warn("the capture counts " + std::string(count_unit_name(counts())) +
       ", not instructions: each interrupt is searched for where its count fits");
}

void Importer::find_base() {
  if (audit_.counting() == Counting::none) return;
  if (!counts_instructions()) return find_base_of_counts();
  std::optional<Position> base;
  if (by_dump_) {
    base = audit_.counting() == Counting::all ? base_of_dump() : std::nullopt;
  } else if (options_.start && !ahead_.empty()) {
    base = base_of_start();
  } else if (!ahead_.empty() && audit_.counting() == Counting::all &&
             ahead_.front().has(kPositionKnown)) {
    base = ahead_.front().position;
  }
  if (base) {
    base_ = *base;
  } else if (prefix_seen_) {
    base_known_ = false;
    warn("the instruction count at the start is not known: counts of the capture are not used");
    audit_ = PositionAudit(Counting::none);
  }
}

void Importer::derive() {
  builder_.start(base_);
  while (!ahead_.empty()) {
    BusTransaction t = ahead_.front();
    ahead_.pop_front();
    if (!derive(t)) return;
  }
  while (true) {
    const AccessRun run = stream_.run();
    if (derive_run(run)) continue;
    // One that is no access, or as many as cannot be derived as a run.
    const auto block =
        stream_.has_runs() ? stream_.peek(std::max<std::size_t>(run.size(), 1)) : stream_.peek();
    if (block.empty()) break;
    std::size_t taken = 0;
    const bool goes_on = derive(block, taken);
    stream_.skip(taken);
    if (!goes_on) return;
  }
  ending_ = stream_.info().ending;
}

/// A run that does not end the recording. False, and nothing done, for any other.
bool Importer::derive_run(AccessRun run) {
  if (run.empty() || options_.stop || (run.flags & kStateWindow) != 0 || !builder_.takes(run) ||
      (by_dump_ && dump_.concerns(run)) || !audit_.apply(run)) {
    return false;
  }
  builder_.add(run);
  stream_.take_run(run);
  return true;
}

/// The same for a segment that may end in a spin loop: the last `delay` transactions wait until
/// more follow, and as many as repeat.
void Importer::derive_delayed(std::size_t delay) {
  builder_.start(base_);
  bool ended = false;
  for (std::size_t kept = delay; !ended;) {
    // Twice as many, so that a long loop is not looked through again and again.
    BusTransaction t;
    while (ahead_.size() < 2 * kept && next(t)) ahead_.push_back(t);
    ended = stream_.at_end();
    if (ended) leave_out_spin_loop();
    kept = ended ? 0 : std::clamp(repeating_tail(ahead_), delay, kMaxSpins);
    while (ahead_.size() > kept) {
      t = ahead_.front();
      ahead_.pop_front();
      if (!derive(t)) return;
    }
  }
  ending_ = stream_.info().ending;
}

/// A full analyser interrupts the machine, whose driver then spins until the analyser was emptied.
void Importer::leave_out_spin_loop() {
  const std::size_t length = repeating_tail(ahead_);
  if (length == 0) return;
  warn("segment " + std::to_string(stream_.segment()) + " ends in " + std::to_string(length) +
       " transactions that repeat: taken as a driver that waits for the analyser, and left out");
  ahead_.resize(ahead_.size() - length);
}

bool Importer::derive(BusTransaction& t) {
  std::size_t taken = 0;
  return derive({&t, 1}, taken);
}

/// Transactions of the recording; false when it is over before or at the last of those `taken`.
bool Importer::derive(std::span<BusTransaction> block, std::size_t& taken) {
  bool goes_on = true;
  for (taken = 0; goes_on && taken < block.size();) {
    const auto left = block.subspan(taken);
    const std::size_t derived = derive_plain(left);
    taken += derived;
    if (derived == left.size()) break;
    BusTransaction& t = block[taken++];
    if (stop_.reached(t)) ending_ = Ending::stop;
    goes_on = ending_ != Ending::stop && !stopped_by(t) && !reset_by(t);
  }
  return goes_on;
}

/// Those before the first that may end the recording or be a write into the dump window.
std::size_t Importer::count_plain(std::span<const BusTransaction> block) {
  const bool window_alone = !by_dump_ && !options_.stop;
  const auto always = [](const auto& t) {
    return t.has(kStateWindow) || (t.op == BusOp::reset && !is_reset_within(t));
  };
  const auto other =
      window_alone ? std::find_if(block.begin(), block.end(), always)
                   : std::find_if(block.begin(), block.end(), [&](const auto& t) {
                       return always(t) || (by_dump_ && dump_.concerns(t)) || stop_.reached(t);
                     });
  return static_cast<std::size_t>(other - block.begin());
}

/// Derives these.
std::size_t Importer::derive_plain(std::span<BusTransaction> block) {
  std::size_t derived = 0;
  bool plain = true;
  while (plain && derived < block.size()) {
    const auto next = block.subspan(derived, std::min(kAtATime, block.size() - derived));
    const std::size_t count = count_plain(next);
    plain = count == next.size();
    for (BusTransaction& t : next.first(count)) audit_.apply(t);
    builder_.add(next.first(count));
    derived += count;
  }
  return derived;
}

/// A transaction that may be a write into the dump window: whether it is the driver's stop marker.
bool Importer::stopped_by(const BusTransaction& t) {
  if (!by_dump_ || !dump_.take(t) || !dump_.stopped()) return false;
  ending_ = Ending::marker;
  if (t.has(kPositionKnown)) stopped_at_ = builder_.rebase(t.position).instruction;
  return true;
}

/// Whether the processor is reset here, after instructions of the recording, and nothing says that
/// they are counted on: what follows is another run, which no replay comes to.
bool Importer::reset_by(const BusTransaction& t) {
  if (t.op != BusOp::reset || !t.has(kPositionKnown)) return false;
  const std::uint64_t completed = builder_.rebase(t.position).instruction;
  if (completed == 0) return false;
  stopped_at_ = completed;
  warn("transaction " + std::to_string(t.index) +
       " resets the processor: the recording ends there, and what follows is a run of its own "
       "(--start transaction:" +
       std::to_string(t.index) + ")");
  return true;
}

/// Reads what is left, so that warnings and hashes cover the whole capture.
void Importer::drain() {
  if (!stream_.next_segment()) return;
  warn("the capture has more segments: this recording is of segment " +
       std::to_string(options_.segment.value_or(0)) + " alone");
  while (stream_.next_segment()) {
  }
}

/// What crosses no bus, from the file that has it.
void Importer::take_internal(Recording& recording) {
  if (options_.capture.internal_path.empty()) return;
  const bool base_known = counts_instructions()
                              ? base_known_ && (by_dump_ || audit_.counting() != Counting::none)
                              : !prefix_seen_;
  if (!base_known && prefix_seen_) {
    warn("values of " + options_.capture.internal_path +
         " cannot be placed, because the instruction count at the start is not known");
    return;
  }
  recording.internal_reads = internal_reads(recording);
  recording.dropped_translations = dropped_translations(recording);
  stores_ = EmulatorStores(options_.capture.internal_path);
}

/// Whether an instruction is not part of the recording, which ends where `--stop` says.
bool Importer::is_behind(const Recording& recording, std::uint64_t instruction) const {
  return recording.instructions && options_.stop && instruction >= *recording.instructions;
}

InternalReads Importer::internal_reads(const Recording& recording) const {
  InternalReads kept;
  for (InternalRead read : load_side_values(options_.capture.internal_path)) {
    if (read.position_known) {
      const Position base = counts_instructions() ? base_ : Position{};
      if (read.position.instruction < base.instruction) continue;
      read.position = RecordingBuilder::rebase(read.position, base);
      if (is_behind(recording, read.position.instruction)) break;
    }
    if (options_.ignore_counts != IgnoreCounts::none || !counts_instructions()) {
      read.position_known = false;
      read.position = {};
    }
    kept.push_back(read);
  }
  return kept;
}

/// They are of use only where the capture counts instructions.
std::vector<DroppedTranslation> Importer::dropped_translations(const Recording& recording) {
  std::vector<DroppedTranslation> kept;
  const std::string& path = options_.capture.internal_path;
  const bool counts = counts_instructions() && options_.ignore_counts == IgnoreCounts::none;
  for (DroppedTranslation dropped : load_dropped_translations(path)) {
    if (!counts) {
      warn("dropped translations of " + path +
           " cannot be placed, because instructions are not counted");
      break;
    }
    if (dropped.position.instruction < base_.instruction) continue;
    dropped.position = RecordingBuilder::rebase(dropped.position, base_);
    if (is_behind(recording, dropped.position.instruction)) break;
    kept.push_back(dropped);
  }
  return kept;
}

Recording Importer::finish() {
  smbase_ = builder_.smbase();
  has_smi_ = builder_.has_smi();
  return builder_.finish();
}

void Importer::settle_smbase(Recording& recording) {
  CpuState& state = recording.initial;
  citcat::settle_smbase(state, smbase_);
  if (is_unknown(state, "smbase")) {
    if (has_smi_)
      recording.warnings.emplace_back(
          "SMBASE is not known and what the first SMI stores does not show it: a replay ends "
          "there, "
          "unless the state gives smbase");
  } else if (smbase_ && *smbase_ != state.smbase) {
    recording.warnings.push_back("the first SMI shows SMBASE " + hex(*smbase_, 8) +
                                 ", the state has " + hex(state.smbase, 8));
  }
}

/// A processor with long mode has registers that a state of 32 bits says nothing of.
void Importer::require_width(const CpuState& state) const {
  const std::string wide(cpu_model_name(CpuModel::x86_64)), cpu(cpu_model_name(state.model));
  const bool has_long_mode = cpu_traits(state.model).has_long_mode;
  if (!has_long_mode && options_.recovers_state && !options_.initial_state_path.empty()) {
    throw UsageError(
        "--recover-state and --initial-state exclude each other, except for a processor with long "
        "mode, whose state may give what the bus does not show");
  }
  if (!state.long_mode && (has_long_mode || was_in_long_mode(state))) {
    throw FormatError(name(), 0,
                      "expected a state of 64 bits (a state dump of layout version 2, or "
                      "--initial-state with \"cpu\": \"" +
                          wide + "\"), found one of 32 bits of a processor " +
                          (has_long_mode ? "that has long mode" : "in long mode"));
  }
  if (state.long_mode && !has_long_mode) {
    throw FormatError(name(), 0,
                      "expected the state of the processor " + cpu +
                          " (--cpu), found one of the processor " + wide);
  }
}

/// Where there is no state, none of its registers is known.
void Importer::leave_open(CpuState& state) const {
  const bool has_long_mode = cpu_traits(state.model).has_long_mode;
  const bool is_given = options_.initial_state || !options_.initial_state_path.empty();
  if (!options_.recovers_state || is_given || !has_long_mode) return;
  state.long_mode.emplace();
  state.unknown = register_names(state.model);
}

/// The capture says how far the processor came, and it is as far as the recording goes.
bool Importer::ends_where_told() const {
  const bool to_its_end = ending_ == Ending::capture_end || is_interrupted(ending_);
  return to_its_end && stream_.info().reached && counts_instructions() && base_known_ &&
         audit_.counting() == Counting::all;
}

/// Instructions that show nothing on the bus may have completed after the last that does, which
/// itself may only have begun: a fault is delivered before the next one.
void Importer::reach(Recording& recording, const Position& told) const {
  if (recording.end) return;  // pins and shutdowns show it themselves
  const std::uint64_t complete = RecordingBuilder::rebase(told, base_).instruction;
  const std::uint64_t shown = recording.instructions.value_or(0);
  if (shown > complete + 1) {
    throw FormatError(name(), 0,
                      "expected no transaction after instruction " + std::to_string(complete) +
                          ", where the capture says that it ends, found one of instruction " +
                          std::to_string(shown - 1));
  }
  // What was interrupted need not show all of the one that was going on.
  const bool begins = shown > complete && !is_interrupted(ending_);
  recording.instructions = complete + (begins ? 1 : 0);
  if (begins) recording.end = Position{complete, 0};
}

/// What the stream of transactions does not say.
void Importer::fill_in(Recording& recording) {
  const CaptureInfo& info = stream_.info();
  recording.initial = std::move(*state_);
  // The store of the stop marker is no part of the recording: nothing of it is evidence.
  if (stopped_at_ && recording.instructions)
    recording.instructions = std::min(*recording.instructions, *stopped_at_);
  if (ends_where_told()) {
    reach(recording, *info.reached);
  } else if (is_interrupted(ending_) && recording.instructions && *recording.instructions != 0 &&
             !begins_another(recording)) {
    // What was interrupted need not show all of the instruction that was going on.
    --*recording.instructions;
  }
  if (is_known(options_.capture.cpu)) {
    recording.initial.model = options_.capture.cpu;
  } else if (!is_known(recording.initial.model)) {
    recording.initial.model = info.cpu;
  }
  leave_open(recording.initial);
  require_width(recording.initial);
  recording.bus.line_bytes = info.bus.line_bytes;
  recording.bus.bus_bytes = info.bus.bus_bytes;
  recording.bus.address_mask = info.bus.address_mask;
  if (options_.capture.cache || info.bus.form != CacheForm::none) {
    recording.bus.form = info.bus.form;
  }
  recording.ending = ending_;
  take_internal(recording);
  recording.provenance = {info.files, info.format, options_text(options_, info.clock_hz)};
  recording.warnings = info.warnings;
  for (const std::string& text : warnings_) recording.warnings.push_back(text);
  for (const std::string& text : audit_.warnings()) recording.warnings.push_back(text);
  settle_smbase(recording);
  if (prefix_seen_ && !by_dump_ && recording.bus.form == CacheForm::write_back) {
    recording.warnings.push_back(
        "the start is inside a capture of a write-back cache: lines that were dirty there are not "
        "known until they are written back");
  }
}

std::optional<Recording> Importer::run_next(bool may_spin) {
  state_ = stream_.initial_state();
  if (!state_ && !search_dump()) return std::nullopt;
  look_ahead();
  find_base();
  if (logger.at(LogLevel::info)) {
    logger.write("the state is " + std::string(by_dump_ ? "dumped in the capture" : "given") +
                 "; instructions are counted from " + std::to_string(base_.instruction));
  }
  if (may_spin) {
    derive_delayed(kLookAhead);
  } else {
    derive();
  }
  stream_.put_back(std::move(ahead_));
  return finish();
}

Recording Importer::run() {
  select_segment();
  find_state();
  look_ahead();
  find_base();
  derive();
  drain();
  Recording recording = finish();
  fill_in(recording);
  return recording;
}

}  // namespace citcat
