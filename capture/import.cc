#include "capture/import.h"

#include <algorithm>
#include <array>
#include <deque>
#include <nlohmann/json.hpp>

#include "capture/dump_window.h"
#include "capture/position_audit.h"
#include "capture/read_ahead.h"
#include "capture/side_values.h"
#include "capture/text_fields.h"
#include "events/recording_builder.h"
#include "events/recording_file.h"
#include "formats/error.h"

namespace citcat {
namespace {

// A state dump is over when this many transactions went by without a write into its window; as many
// of the recording's first are looked at to judge their counts.
constexpr std::size_t kLookAhead = 4096;
constexpr std::uint64_t kProgressEvery = 1 << 16;

struct KindName {
  Where::Kind kind;
  std::string_view name;
};
constexpr std::array<KindName, 5> kKindNames{{
    {Where::Kind::interrupt, "interrupt"},
    {Where::Kind::transaction, "transaction"},
    {Where::Kind::sample, "sample"},
    {Where::Kind::instruction, "instruction"},
    {Where::Kind::clock, "clock"},
}};

/// Tells when the stream of transactions has come to a place.
class WhereFinder {
 public:
  explicit WhereFinder(const std::optional<Where>& where) : where_(where) {}

  /// Takes the next transaction of the capture; true when it is at the place or behind it.
  bool reached(const BusTransaction& t) { return where_ && reached_place(t); }

 private:
  bool reached_place(const BusTransaction& t) {
    const bool interrupt = t.op == BusOp::interrupt_acknowledge;
    const std::uint64_t interrupts_before = interrupts_;
    if (interrupt) ++interrupts_;
    switch (where_->kind) {
      case Where::Kind::interrupt:
        return interrupt && interrupts_before >= where_->number;
      case Where::Kind::transaction:
        return t.index >= where_->number;
      case Where::Kind::sample:
      case Where::Kind::clock:
        return t.has(kClockKnown) && t.clock >= where_->number;
      case Where::Kind::instruction:
        return t.has(kPositionKnown) && t.position.instruction >= where_->number;
    }
    return false;
  }

  std::optional<Where> where_;
  std::uint64_t interrupts_ = 0;
};

/// The transactions of a reader, taken a block at a time.
class TransactionStream {
 public:
  TransactionStream(CaptureReader& reader, const std::function<void(std::uint64_t)>& progress)
      : source_(reader), progress_(progress) {}

  /// The next transactions of the segment, as many as are at hand, which the caller may change;
  /// none at its end. They come again unless skip() takes them.
  std::span<BusTransaction> peek() {
    if (!put_back_.empty()) return {&put_back_.front(), 1};
    if (block_.empty() && !read_block()) return {};
    return block_;
  }
  /// Goes beyond the first `count` of what peek() returned last.
  void skip(std::size_t count) {
    if (put_back_.empty()) {
      block_ = block_.subspan(count);
    } else if (count != 0) {
      put_back_.pop_front();
    }
  }
  /// These come again, before all others.
  void put_back(std::deque<BusTransaction> transactions) { put_back_ = std::move(transactions); }
  bool next(BusTransaction& t) {
    const auto found = peek();
    if (found.empty()) return false;
    t = found.front();
    skip(1);
    return true;
  }
  /// Goes on to the next segment of the capture, leaving out what is left of this one.
  bool next_segment() {
    for (auto left = peek(); !left.empty(); left = peek()) skip(left.size());
    at_end_ = !source_.next_segment();
    if (!at_end_) ++segment_;
    return !at_end_;
  }

  bool at_end() const { return at_end_ && put_back_.empty(); }  ///< of the segment
  std::uint32_t segment() const { return segment_; }
  std::uint64_t read() const { return read_; }  ///< transactions so far
  /// Of the capture, as far as it was read.
  const CaptureInfo& info() const { return source_.info(); }
  /// That the capture carries for the segment.
  const std::optional<CpuState>& initial_state() const { return source_.initial_state(); }

 private:
  bool read_block() {
    if (at_end_) return false;
    block_ = source_.next();
    at_end_ = block_.empty();
    const std::uint64_t before = read_;
    read_ += block_.size();
    if (read_ / kProgressEvery != before / kProgressEvery && progress_) progress_(read_);
    return !at_end_;
  }

  ReadAhead source_;
  const std::function<void(std::uint64_t)>& progress_;
  std::span<BusTransaction> block_;  ///< read but not yet looked at
  std::deque<BusTransaction> put_back_;
  bool at_end_ = false;
  std::uint32_t segment_ = 0;
  std::uint64_t read_ = 0;
};

/// Length of the tail of `traffic` in which the same few transactions come again and again; 0 where
/// there is none.
std::size_t repeating_tail(const std::deque<BusTransaction>& traffic) {
  constexpr std::size_t kLongestPeriod = 64, kLeastRounds = 8;
  const auto same = [](const BusTransaction& a, const BusTransaction& b) {
    return a.op == b.op && a.address == b.address && a.size == b.size && a.data == b.data;
  };
  const std::size_t n = traffic.size();
  for (std::size_t period = 1; period <= kLongestPeriod; ++period) {
    std::size_t length = period;
    while (length < n && same(traffic[n - 1 - length], traffic[n - 1 - length + period])) ++length;
    if (length >= kLeastRounds * period && length >= kLongestPeriod) return length;
  }
  return 0;
}

class Importer {
 public:
  Importer(TransactionStream& stream, const ImportOptions& options, EvidenceWriter* evidence)
      : stream_(stream),
        options_(options),
        builder_({stream.info().bus}, evidence),
        start_(options.start),
        stop_(options.stop),
        audit_(options.ignore_counts == IgnoreCounts::none                 ? Counting::all
               : options.ignore_counts == IgnoreCounts::all_but_interrupts ? Counting::interrupts
                                                                           : Counting::none) {}

  /// The recording that the options ask for.
  Recording run();
  /// The next one that begins with a dump, or with a state the capture itself carries: everything
  /// but what is known at the end of the capture. Nothing when the segment has none left.
  /// `may_spin`: the segment may end in the spin loop of a driver.
  std::optional<Recording> run_next(bool may_spin);
  std::string missing_dump() const;
  /// Completes what run_next() returned, once the capture was read to its end.
  void fill_in(Recording& recording);

 private:
  bool next(BusTransaction& t) { return stream_.next(t); }
  void select_segment();
  void find_state();
  bool search_dump();
  void find_dump();
  bool dump_ended();
  void pass(const BusTransaction& t);
  void pass_ahead();
  void take_dump();
  void skip_to_start();
  void look_ahead();
  void find_base();
  std::optional<Position> base_of_dump() const;
  std::optional<Position> base_of_start() const;
  void derive();
  bool derive(std::span<BusTransaction> block, std::size_t& taken);
  bool derive(BusTransaction& t);
  bool stopped_by(const BusTransaction& t);
  void derive_delayed(std::size_t delay);
  void leave_out_spin_loop();
  void drain();
  std::vector<InternalRead> internal_reads(const Recording& recording);
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  const std::string& name() const;

  TransactionStream& stream_;
  const ImportOptions& options_;
  RecordingBuilder builder_;
  WhereFinder start_, stop_;
  PositionAudit audit_;
  DumpFinder dump_;
  std::deque<BusTransaction> ahead_;  ///< read but not yet derived
  std::optional<CpuState> state_;
  std::vector<std::string> warnings_;

  bool by_dump_ = false;
  Ending ending_ = Ending::unknown;
  std::optional<std::uint64_t> stopped_at_;  ///< instructions before the driver's stop marker
  bool prefix_seen_ = false;                 ///< the machine ran before the start
  std::optional<Position> first_window_, last_window_;  ///< counts at writes into the dump window
  Position base_;
  bool base_known_ = true;
};

const std::string& Importer::name() const {
  static const std::string kCapture = "capture";
  return stream_.info().files.empty() ? kCapture : stream_.info().files.front().name;
}

void Importer::select_segment() {
  for (std::uint32_t i = 0; i < options_.segment.value_or(0); ++i) {
    if (!stream_.next_segment()) {
      throw UsageError("segment " + std::to_string(*options_.segment) +
                       " was asked for, but the capture has only " + std::to_string(i + 1));
    }
  }
}

/// Where the state comes from decides where the recording starts.
void Importer::find_state() {
  if (options_.initial_state) {
    state_ = options_.initial_state;
  } else if (!options_.initial_state_path.empty()) {
    state_ = load_state_json(options_.initial_state_path);
  } else if (!options_.start) {
    state_ = stream_.initial_state();
  } else {
    throw UsageError("--start " + where_text(*options_.start) +
                     " needs the processor's state there: give it with --initial-state");
  }
  if (state_) {
    skip_to_start();
  } else {
    find_dump();
  }
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
  return "expected a state dump, found none in " + std::to_string(stream_.read()) +
         " transactions: give the processor's state with --initial-state";
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
    throw FormatError(name(), 0,
                      "expected a state dump of layout version 1, found one that cannot be read: "
                      "give the processor's state with --initial-state");
  }
  state_ = std::move(dumped->state);
  for (std::string& text : dumped->warnings) warn(std::move(text));
}

void Importer::look_ahead() {
  BusTransaction t;
  while (ahead_.size() < kLookAhead && next(t)) ahead_.push_back(t);
  const std::vector<BusTransaction> first(ahead_.begin(), ahead_.end());
  audit_.judge(first, stream_.at_end());
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
  // The first instruction that starts behind the place is the first of the recording.
  return known([](const auto& t) { return t.op == BusOp::instruction_start; });
}

void Importer::find_base() {
  if (audit_.counting() == Counting::none) return;
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
  for (auto block = stream_.peek(); !block.empty(); block = stream_.peek()) {
    std::size_t taken = 0;
    const bool goes_on = derive(block, taken);
    stream_.skip(taken);
    if (!goes_on) return;
  }
  ending_ = stream_.info().ending;
}

/// The same for a segment that may end in a spin loop: the last `delay` transactions wait until
/// more follow.
void Importer::derive_delayed(std::size_t delay) {
  builder_.start(base_);
  bool ended = false;
  while (!ended) {
    ended = stream_.at_end();
    if (ended) leave_out_spin_loop();
    while (ahead_.size() > (ended ? 0 : delay)) {
      BusTransaction t = ahead_.front();
      ahead_.pop_front();
      if (!derive(t)) return;
    }
    BusTransaction t;
    if (next(t)) ahead_.push_back(t);
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
  std::size_t derived = 0;
  bool goes_on = true;
  for (taken = 0; goes_on && taken < block.size();) {
    BusTransaction& t = block[taken++];
    const bool over = stop_.reached(t);
    if (over) ending_ = Ending::stop;
    const bool dumps = t.has(kStateWindow) || (by_dump_ && dump_.concerns(t));
    if (!over && !dumps) [[likely]] {
      audit_.apply(t);
      continue;
    }
    builder_.add(block.subspan(derived, taken - 1 - derived));
    derived = taken;
    goes_on = !over && !stopped_by(t);
  }
  builder_.add(block.subspan(derived, taken - derived));
  return goes_on;
}

/// A transaction that may be a write into the dump window: whether it is the driver's stop marker.
bool Importer::stopped_by(const BusTransaction& t) {
  if (!by_dump_ || !dump_.take(t) || !dump_.stopped()) return false;
  ending_ = Ending::marker;
  if (t.has(kPositionKnown)) stopped_at_ = builder_.rebase(t.position).instruction;
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

std::vector<InternalRead> Importer::internal_reads(const Recording& recording) {
  std::vector<InternalRead> kept;
  if (options_.capture.internal_path.empty()) return kept;
  if (!base_known_ && prefix_seen_) {
    warn("values of " + options_.capture.internal_path +
         " cannot be placed, because the instruction count at the start is not known");
    return kept;
  }
  for (InternalRead read : load_side_values(options_.capture.internal_path)) {
    if (read.position_known) {
      if (read.position.instruction < base_.instruction) continue;
      read.position = RecordingBuilder::rebase(read.position, base_);
      const bool beyond = recording.instructions && options_.stop &&
                          read.position.instruction >= *recording.instructions;
      if (beyond) break;
    }
    if (options_.ignore_counts != IgnoreCounts::none) {
      read.position_known = false;
      read.position = {};
    }
    kept.push_back(read);
  }
  return kept;
}

std::string options_text(const ImportOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (options.start) json["start"] = where_text(*options.start);
  if (options.stop) json["stop"] = where_text(*options.stop);
  if (options.segment.value_or(0) != 0) json["segment"] = *options.segment;
  if (options.capture.cpu != CpuModel::unknown) json["cpu"] = cpu_model_name(options.capture.cpu);
  if (!options.initial_state_path.empty() || options.initial_state) json["initial_state"] = true;
  if (!options.capture.internal_path.empty()) json["internal"] = true;
  if (options.ignore_counts == IgnoreCounts::all) json["ignore_counts"] = "all";
  if (options.ignore_counts == IgnoreCounts::all_but_interrupts) {
    json["ignore_counts"] = "all-but-interrupts";
  }
  return json.dump();
}

/// What the stream of transactions does not tell.
void Importer::fill_in(Recording& recording) {
  const CaptureInfo& info = stream_.info();
  recording.initial = std::move(*state_);
  // The store of the stop marker is no part of the recording: nothing of it is evidence.
  if (stopped_at_ && recording.instructions)
    recording.instructions = std::min(*recording.instructions, *stopped_at_);
  // What was interrupted need not show all of the instruction that was going on.
  if (is_interrupted(ending_) && recording.instructions && *recording.instructions != 0)
    --*recording.instructions;
  if (options_.capture.cpu != CpuModel::unknown) {
    recording.initial.model = options_.capture.cpu;
  } else if (recording.initial.model == CpuModel::unknown) {
    recording.initial.model = info.cpu;
  }
  recording.bus.line_bytes = info.bus.line_bytes;
  recording.bus.bus_bytes = info.bus.bus_bytes;
  recording.bus.address_mask = info.bus.address_mask;
  if (options_.capture.cache || info.bus.form != CacheForm::none) {
    recording.bus.form = info.bus.form;
  }
  recording.ending = ending_;
  recording.internal_reads = internal_reads(recording);
  recording.provenance = {info.files, info.format, options_text(options_)};
  recording.warnings = info.warnings;
  for (const std::string& text : warnings_) recording.warnings.push_back(text);
  for (const std::string& text : audit_.warnings()) recording.warnings.push_back(text);
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
  if (may_spin) {
    derive_delayed(kLookAhead);
  } else {
    derive();
  }
  stream_.put_back(std::move(ahead_));
  return builder_.finish();
}

Recording Importer::run() {
  select_segment();
  find_state();
  look_ahead();
  find_base();
  derive();
  drain();
  Recording recording = builder_.finish();
  fill_in(recording);
  return recording;
}

class CollectedEvidence final : public EvidenceWriter {
 public:
  explicit CollectedEvidence(std::vector<BusTransaction>& into) : into_(into) {}
  void write(const BusTransaction& transaction) override { into_.push_back(transaction); }

 private:
  std::vector<BusTransaction>& into_;
};

class MemoryEvidence final : public EvidenceReader {
 public:
  explicit MemoryEvidence(const std::vector<BusTransaction>& from) : from_(from) {}
  bool next(BusTransaction& out) override {
    if (next_ == from_.size()) return false;
    out = from_[next_++];
    return true;
  }

 private:
  const std::vector<BusTransaction>& from_;
  std::size_t next_ = 0;
};

}  // namespace

Where parse_where(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto* const row =
      std::find_if(kKindNames.begin(), kKindNames.end(),
                   [&](const KindName& k) { return k.name == text.substr(0, colon); });
  const auto number =
      colon == std::string_view::npos ? std::nullopt : parse_number(text.substr(colon + 1), 10);
  if (row == kKindNames.end() || !number) {
    throw UsageError(
        "expected interrupt:N, transaction:N, sample:N, instruction:N or clock:N, "
        "found \"" +
        std::string(text) + "\"");
  }
  return {row->kind, *number};
}

std::string where_text(const Where& where) {
  const auto* const row = std::find_if(kKindNames.begin(), kKindNames.end(),
                                       [&](const KindName& k) { return k.kind == where.kind; });
  return std::string(row->name) + ":" + std::to_string(where.number);
}

ImportResult summarize(const Recording& recording) {
  ImportResult result;
  result.recordings = 1;
  result.format = recording.provenance.format;
  result.cpu = recording.initial.model;
  result.transactions = recording.totals.transactions;
  result.instructions = recording.instructions;
  result.image_bytes = recording.image.byte_count();
  result.interrupts = recording.interrupts.size();
  result.io_reads = recording.io_reads.size();
  result.external_writes = recording.external_writes.size();
  result.ending = recording.ending;
  result.warnings = recording.warnings;
  return result;
}

namespace {

/// Adds up what the recordings of one archive tell.
void add_to(ImportResult& all, const ImportResult& one) {
  if (all.recordings == 0) {
    all = one;
    return;
  }
  ++all.recordings;
  all.transactions += one.transactions;
  if (all.instructions && one.instructions) {
    *all.instructions += *one.instructions;
  } else {
    all.instructions.reset();
  }
  all.image_bytes += one.image_bytes;
  all.interrupts += one.interrupts;
  all.io_reads += one.io_reads;
  all.external_writes += one.external_writes;
  if (!is_interrupted(all.ending)) all.ending = one.ending;
  for (const std::string& text : one.warnings) {
    if (std::find(all.warnings.begin(), all.warnings.end(), text) == all.warnings.end())
      all.warnings.push_back(text);
  }
}

/// `name` is that of the capture, for the message.
void require_data(const CaptureReader& reader, const std::string& name) {
  const CaptureInfo& info = reader.info();
  if (info.has_data) return;
  throw FormatError(name, 0,
                    "expected a capture with data, found format " + info.format +
                        ", which has addresses only: nothing can be replayed from it");
}

/// Leaves out of a recording what tells the file that it was imported from.
void strip_provenance(Recording& recording, const CaptureInfo& capture) {
  recording.provenance = {};
  std::erase_if(recording.warnings, [&](const std::string& text) {
    return std::find(capture.warnings.begin(), capture.warnings.end(), text) !=
           capture.warnings.end();
  });
}

/// Whether every state that the capture carries begins a recording: nothing asks for one place.
bool wants_all(const ImportOptions& options) {
  return !options.segment && options.initial_state_path.empty() && !options.initial_state &&
         !options.start && !options.stop && options.capture.internal_path.empty();
}

/// An analyser that filled up, was emptied and started again: positions begin again, what happened
/// in between is not known, and each part that has a state of its own can be replayed.
class SegmentedImport {
 public:
  /// `files`: how many the capture has, as an analyser leaves them that is emptied again and again.
  SegmentedImport(CaptureReader& reader, const ImportOptions& options, std::size_t files,
                  RecordingFileWriter& archive)
      : options_(options), files_(files), stream_(reader, options.progress), archive_(archive) {}

  ImportResult run() {
    do {
      import_segment();
    } while (stream_.next_segment());
    if (parts_.empty()) throw FormatError(name(), 0, missing_);
    ImportResult result;
    for (std::size_t i = 0; i < parts_.size(); ++i) finish(i, result);
    if (parts_.size() > 1)
      result.warnings.push_back(std::to_string(parts_.size()) +
                                " recordings: nothing is known of what happened between them");
    for (const std::string& text : left_out_) result.warnings.push_back(text);
    archive_.close();
    return result;
  }

 private:
  struct Part {
    std::unique_ptr<Importer> importer;
    Recording recording;
  };

  /// A driver may stop and dump again while the analyser runs on.
  void import_segment() {
    const std::size_t before = parts_.size();
    do {
      archive_.select(parts_.size());
      auto importer = std::make_unique<Importer>(stream_, options_, &archive_);
      std::optional<Recording> recording = importer->run_next(stream_.segment() + 1 < files_);
      if (!recording) {
        if (missing_.empty()) missing_ = importer->missing_dump();
        break;
      }
      parts_.push_back({std::move(importer), std::move(*recording)});
    } while (!stream_.at_end() && !stream_.initial_state());
    if (before != parts_.size()) return;
    left_out_.push_back("segment " + std::to_string(stream_.segment()) +
                        " has no state dump: it is left out");
  }

  void finish(std::size_t number, ImportResult& result) {
    Part& part = parts_[number];
    part.importer->fill_in(part.recording);
    add_to(result, summarize(part.recording));
    if (parts_.size() > 1) {
      part.recording.warnings.push_back("recording " + std::to_string(number) + " of " +
                                        std::to_string(parts_.size()) +
                                        ": nothing is known of what happened between them");
    }
    if (!options_.provenance) strip_provenance(part.recording, stream_.info());
    archive_.select(number);
    archive_.add(part.recording);
  }

  std::string name() const {
    return stream_.info().files.empty() ? "capture" : stream_.info().files.front().name;
  }

  const ImportOptions& options_;
  std::size_t files_;
  TransactionStream stream_;
  RecordingFileWriter& archive_;
  std::vector<Part> parts_;
  std::vector<std::string> left_out_;
  std::string missing_;  ///< why the first segment without a state has none
};

}  // namespace

Recording import_from(CaptureReader& reader, const ImportOptions& options,
                      EvidenceWriter* evidence) {
  require_data(reader, "capture");
  TransactionStream stream(reader, options.progress);
  return Importer(stream, options, evidence).run();
}

ImportResult import_capture(const std::vector<std::string>& paths, const ImportOptions& options,
                            const std::string& out_path) {
  const std::unique_ptr<CaptureReader> reader = open_capture(paths, options.capture);
  require_data(*reader, paths.front());
  RecordingFileWriter archive(out_path);
  if (wants_all(options)) return SegmentedImport(*reader, options, paths.size(), archive).run();
  Recording recording = import_from(*reader, options, &archive);
  const ImportResult result = summarize(recording);
  if (!options.provenance) strip_provenance(recording, reader->info());
  archive.finish(recording);
  return result;
}

std::unique_ptr<EvidenceReader> ImportedRecording::read_evidence() const {
  return std::make_unique<MemoryEvidence>(evidence);
}

ImportedRecording import_to_memory(const std::vector<std::string>& paths,
                                   const ImportOptions& options) {
  const std::unique_ptr<CaptureReader> reader = open_capture(paths, options.capture);
  ImportedRecording imported;
  CollectedEvidence evidence(imported.evidence);
  imported.recording = import_from(*reader, options, &evidence);
  return imported;
}

}  // namespace citcat
