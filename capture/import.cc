#include "capture/import.h"

#include <algorithm>
#include <array>
#include <deque>
#include <nlohmann/json.hpp>

#include "capture/dump_window.h"
#include "capture/position_audit.h"
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
  bool reached(const BusTransaction& t) {
    const bool interrupt = t.op == BusOp::interrupt_acknowledge;
    const std::uint64_t interrupts_before = interrupts_;
    if (interrupt) ++interrupts_;
    if (!where_) return false;
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

 private:
  std::optional<Where> where_;
  std::uint64_t interrupts_ = 0;
};

class Importer {
 public:
  Importer(CaptureReader& reader, const ImportOptions& options, EvidenceWriter* evidence)
      : reader_(reader),
        options_(options),
        builder_({reader.info().bus}, evidence),
        start_(options.start),
        stop_(options.stop),
        audit_(options.ignore_counts == IgnoreCounts::none                 ? Counting::all
               : options.ignore_counts == IgnoreCounts::all_but_interrupts ? Counting::interrupts
                                                                           : Counting::none) {}

  Recording run();

 private:
  bool next(BusTransaction& t);
  void select_segment();
  void find_state();
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
  void drain();
  void fill_in(Recording& recording);
  std::vector<InternalRead> internal_reads(const Recording& recording);
  void warn(std::string text) { warnings_.push_back(std::move(text)); }
  const std::string& name() const;

  CaptureReader& reader_;
  const ImportOptions& options_;
  RecordingBuilder builder_;
  WhereFinder start_, stop_;
  PositionAudit audit_;
  DumpFinder dump_;
  std::deque<BusTransaction> ahead_;  ///< read but not yet derived
  bool at_end_ = false;               ///< the reader has no more
  std::uint64_t read_ = 0;
  std::optional<CpuState> state_;
  std::vector<std::string> warnings_;

  bool by_dump_ = false;
  std::optional<std::uint64_t> stopped_at_;  ///< instructions before the driver's stop marker
  bool prefix_seen_ = false;  ///< the machine ran before the start
  std::optional<Position> first_window_, last_window_;  ///< counts at writes into the dump window
  Position base_;
  bool base_known_ = true;
};

const std::string& Importer::name() const {
  static const std::string kCapture = "capture";
  return reader_.info().files.empty() ? kCapture : reader_.info().files.front().name;
}

bool Importer::next(BusTransaction& t) {
  if (at_end_) return false;
  if (!reader_.next(t)) {
    at_end_ = true;
    return false;
  }
  if (++read_ % kProgressEvery == 0 && options_.progress) options_.progress(read_);
  return true;
}

void Importer::select_segment() {
  BusTransaction t;
  for (std::uint32_t i = 0; i < options_.segment; ++i) {
    while (reader_.next(t)) {
    }
    if (!reader_.next_segment()) {
      throw UsageError("segment " + std::to_string(options_.segment) +
                       " was asked for, but the capture has only " + std::to_string(i + 1));
    }
  }
}

/// Where the state comes from decides where the recording starts.
void Importer::find_state() {
  if (!options_.initial_state_path.empty()) {
    state_ = load_state_json(options_.initial_state_path);
  } else if (!options_.start) {
    state_ = reader_.initial_state();
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
                   std::to_string(read_) + " transactions");
}

/// Reads until the state dump is over. What follows it is left in ahead_.
void Importer::find_dump() {
  BusTransaction t;
  while (next(t)) {
    if (dump_.take(t)) {
      pass_ahead();
      by_dump_ = true;
      if (t.has(kPositionKnown)) {
        if (!first_window_) first_window_ = t.position;
        last_window_ = t.position;
      }
      if (dump_.started()) return take_dump();
    } else if (!by_dump_) {
      pass(t);
    } else {
      ahead_.push_back(t);
      if (ahead_.size() >= kLookAhead && dump_ended()) return take_dump();
    }
  }
  if (!dump_.found()) {
    throw FormatError(name(), 0,
                      "expected a state dump, found none in " + std::to_string(read_) +
                          " transactions: give the processor's state with --initial-state");
  }
  if (dump_.expects_marker()) {
    throw FormatError(name(), 0,
                      "the driver dumped the state, but the start marker that should follow was "
                      "not found");
  }
  take_dump();
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
  audit_.judge(first, at_end_);
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
  BusTransaction t;
  while (true) {
    if (!ahead_.empty()) {
      t = ahead_.front();
      ahead_.pop_front();
    } else if (!next(t)) {
      return;
    }
    if (stop_.reached(t)) return;
    if (by_dump_ && t.op == BusOp::data_write && dump_.take(t)) {
      if (dump_.stopped()) {
        if (t.has(kPositionKnown)) stopped_at_ = builder_.rebase(t.position).instruction;
        return;
      }
      continue;
    }
    if (t.has(kStateWindow)) continue;
    audit_.apply(t);
    builder_.add(t);
  }
}

/// Reads what is left, so that warnings and hashes cover the whole capture.
void Importer::drain() {
  BusTransaction t;
  while (next(t)) {
  }
  if (reader_.next_segment()) {
    warn("the capture has more segments: this recording is of segment " +
         std::to_string(options_.segment) + " alone");
    do {
      while (reader_.next(t)) {
      }
    } while (reader_.next_segment());
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
      read.position = builder_.rebase(read.position);
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
  if (options.segment != 0) json["segment"] = options.segment;
  if (options.capture.cpu != CpuModel::unknown) json["cpu"] = cpu_model_name(options.capture.cpu);
  if (!options.initial_state_path.empty()) json["initial_state"] = true;
  if (!options.capture.internal_path.empty()) json["internal"] = true;
  if (options.ignore_counts == IgnoreCounts::all) json["ignore_counts"] = "all";
  if (options.ignore_counts == IgnoreCounts::all_but_interrupts) {
    json["ignore_counts"] = "all-but-interrupts";
  }
  return json.dump();
}

/// What the stream of transactions does not tell.
void Importer::fill_in(Recording& recording) {
  const CaptureInfo& info = reader_.info();
  recording.initial = std::move(*state_);
  // The store of the stop marker is no part of the recording: nothing of it is evidence.
  if (stopped_at_ && recording.instructions)
    recording.instructions = std::min(*recording.instructions, *stopped_at_);
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

Recording Importer::run() {
  if (!reader_.info().has_data) {
    throw FormatError(name(), 0,
                      "expected a capture with data, found format " + reader_.info().format +
                          ", which has addresses only");
  }
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
  const auto number = colon == std::string_view::npos
                          ? std::nullopt
                          : parse_number(text.substr(colon + 1), 10);
  if (row == kKindNames.end() || !number) {
    throw UsageError("expected interrupt:N, transaction:N, sample:N, instruction:N or clock:N, "
                     "found \"" + std::string(text) + "\"");
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
  result.format = recording.provenance.format;
  result.cpu = recording.initial.model;
  result.transactions = recording.totals.transactions;
  result.instructions = recording.instructions;
  result.image_bytes = recording.image.byte_count();
  result.interrupts = recording.interrupts.size();
  result.io_reads = recording.io_reads.size();
  result.external_writes = recording.external_writes.size();
  result.warnings = recording.warnings;
  return result;
}

Recording import_from(CaptureReader& reader, const ImportOptions& options,
                      EvidenceWriter* evidence) {
  return Importer(reader, options, evidence).run();
}

ImportResult import_capture(const std::vector<std::string>& paths, const ImportOptions& options,
                            const std::string& out_path) {
  const std::unique_ptr<CaptureReader> reader = open_capture(paths, options.capture);
  RecordingFileWriter archive(out_path);
  const Recording recording = import_from(*reader, options, &archive);
  archive.finish(recording);
  return summarize(recording);
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
