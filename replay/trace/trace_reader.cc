#include "replay/trace/trace_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "events/archive/container.h"
#include "events/archive/recording_file.h"
#include "events/capture_time.h"
#include "events/position_text.h"
#include "formats/io/input.h"
#include "formats/io/once_input.h"
#include "formats/kt/kt.h"
#include "formats/kt/kt_counter.h"
#include "formats/kt/kt_note_reader.h"
#include "replay/infer/places/event_placer.h"
#include "replay/run/replay_session.h"
#include "replay/run/verified_run.h"
#include "replay/session/checkpoints.h"
#include "replay/trace/record_sink.h"

namespace citcat {

namespace {

// ---- A recording --------------------------------------------------------------------------------

class RecordingSource final : public TraceReader::Source {
 public:
  RecordingSource(const std::string& path, const TraceReaderOptions& options)
      : options_(options),
        path_(path),
        file_(RecordingFile::open(path)),
        placed_now_(place_events(file_, {}).has_value()),
        checkpoints_(file_),
        sink_(kt_options(options), options.events, options.clocks ? &times_ : nullptr) {
    if (options_.clocks) require_clocks();
    begin(from_beginning());
  }

  const TraceRecord* next() override {
    while (at_ == sink_.records.size()) {
      if (ended_) return nullptr;
      replay_on();
    }
    return &sink_.records[at_++];
  }

  Position position() const override {
    return at_ < sink_.records.size() ? sink_.records[at_].position : session_->position();
  }

  bool is_wide() const override { return kt_form(file_.recording().initial.model) == KtForm::wide; }
  double clock_hz() const override { return clock_rate(file_.recording().provenance); }

  void seek(Position position) override {
    const std::uint64_t instruction = position.instruction;
    std::optional<Checkpoints::Start> start;
    if (options_.use_checkpoints && !options_.clocks)
      start = checkpoints_.start_for({instruction, ~std::uint64_t{0}});
    const std::uint64_t here = failed_ ? ~std::uint64_t{0} : reached();
    // What was replayed beyond the wanted instruction is of no use: its records may be gone.
    const bool forward = instruction > here || (here == 0 && instruction == 0);
    if (!forward || (start && start->instruction > here)) begin(start ? start : from_beginning());
    at_ = 0;
    sink_.begin_at(position);
  }

 private:
  static constexpr std::uint64_t kStep = std::uint64_t{1}
                                         << 12;  ///< instructions at a time: records in L2
  /// Records at a time where one instruction makes more than that: a REP makes one each iteration.
  static constexpr std::size_t kMostRecords = std::size_t{1} << 16;

  static KtOptions kt_options(const TraceReaderOptions& options) {
    KtOptions kt;
    kt.offsets = options.offsets;
    kt.process_records = options.process_records;
    kt.wide = options.wide;
    return kt;
  }
  void require_clocks() const {
    BusTransaction first;
    if (file_.meta().evidence != EvidenceMode::full || !file_.evidence()->next(first) ||
        !first.has(kClockKnown)) {
      throw UsageError(path_ + ": expected evidence with clocks, found none");
    }
  }
  std::uint64_t reached() const { return session_->position().instruction; }

  /// With what the archive remembers of having been verified, if it does.
  std::optional<Checkpoints::Start> from_beginning() const {
    if (!options_.check || !options_.use_checkpoints || options_.clocks) return std::nullopt;
    return checkpoints_.beginning();
  }

  void make_session(const std::optional<Checkpoints::Start>& start) {
    session_.reset();
    SessionOptions session;
    const bool evidence = file_.meta().evidence == EvidenceMode::full;
    session.check =
        (options_.check || options_.clocks) && !start && (evidence || !file_.digests().empty());
    times_ = {};
    if (options_.clocks) session.times = &times_;
    session.start = start;
    session.pause = [this](Position now) {
      return paused_ = now.iteration != 0 && sink_.records.size() >= kMostRecords;
    };
    session.checkpoints = &checkpoints_;
    if (!start && verified_) session.verified = &*verified_;
    compared_ = session.check && session.verified == nullptr;
    session_.emplace(file_, &sink_, std::move(session));
  }

  /// Makes a replay ready that is at the beginning or at a checkpoint.
  void begin(const std::optional<Checkpoints::Start>& start) {
    make_session(start);
    sink_.begin_at({});
    at_ = 0;
    ended_ = false;
    failed_.reset();
  }

  /// Whoever has read so much goes on: all of the recording is verified, and the replay made anew
  /// up to where it is, to go on without comparison. One that diverges is compared as before.
  void stop_comparing() {
    compared_ = false;
    const std::uint64_t here = reached();
    CheckpointedRun run = verify_once(file_, path_, placed_now_, {});
    if (!run.sure()) return;
    verified_ = std::move(run.run);
    make_session(std::nullopt);
    while (reached() < here) {
      session_->run_to(std::min(here, reached() + kStep));
      sink_.records.clear();  // they were handed out
    }
  }

  /// Replays a little further. What was sure before a divergence is kept and handed out first.
  void replay_on() {
    if (failed_) throw_failure();
    sink_.records.clear();
    at_ = 0;
    if (compared_ && options_.use_checkpoints && !options_.clocks &&
        reached() >= options_.verify_after)
      stop_comparing();
    const std::uint64_t end = session_->to();
    const std::uint64_t from = std::min(end, std::max(reached(), sink_.from().instruction));
    const std::uint64_t to = from + std::min(end - from, kStep);
    paused_ = false;
    const ReplayReport report = session_->run_to(to);
    if (report.end == ReplayReport::End::diverged) {
      fail(*report.divergence);
    } else if (paused_) {
      return;
    } else if (report.instructions < to || to == end) {
      finish(report);
    }
  }

  void finish(const ReplayReport& report) {
    ended_ = true;
    const ReplayReport whole = session_->end(report);
    if (whole.end == ReplayReport::End::diverged) fail(*whole.divergence);
    if (const auto differs = session_->differs_before()) {
      fail({{*differs, 0},
            ~std::uint64_t{0},
            "the replay is not the one that was verified",
            "",
            "",
            {}});
    }
  }

  void fail(const Divergence& d) {
    failed_ = d;
    ended_ = false;
    failure_ =
        file_.container().path() + ": diverged before or at " + place_text(d) + ": " + d.reason;
  }

  [[noreturn]] void throw_failure() const {
    std::optional<std::uint64_t> clock;
    if (failed_->shown && failed_->shown->has(kClockKnown)) clock = failed_->shown->clock;
    throw TraceDiverged(failure_, failed_->reason, clock);
  }

  TraceReaderOptions options_;
  std::string path_;
  RecordingFile file_;
  bool placed_now_;  ///< interrupts had no places in the archive
  Checkpoints checkpoints_;
  BusTimes times_;  ///< where clocks are wanted
  RecordSink sink_;
  std::optional<ReplaySession> session_;
  std::optional<CheckpointRun> verified_;  ///< what verifying it here gave
  std::size_t at_ = 0;
  bool compared_ = false;  ///< with evidence or digests, on the way
  bool ended_ = false;
  bool paused_ = false;  ///< within a REP, with records enough
  std::optional<Divergence> failed_;
  std::string failure_;
};

// ---- A KT file ----------------------------------------------------------------------------------

/// Spools what comes through a pipe in a form that has notes; false for other forms.
bool make_indexed(const std::string& path) {
  const Compression form = InputStream(path, InputStream::Use::head).compression();
  if (form != Compression::zstd && form != Compression::stored_kt) return false;
  make_rereadable(path);
  return true;
}

class KtFileSource final : public TraceReader::Source {
 public:
  KtFileSource(std::string path, const TraceReaderOptions& options)
      : path_(std::move(path)),
        once_(is_once_input(path_) && !(options.notes && make_indexed(path_))),
        events_(options.events),
        wide_(options.wide),
        notes_(once_ ? KtNoteReader() : KtNoteReader(path_)) {
    begin({});
  }

  const TraceRecord* next() override {
    for (;;) {
      const bool more = next_of_any(record_);
      if (!more) return nullptr;
      begun_ = begun_ || record_.position >= from_;
      if (begun_) return &record_;
    }
  }

  Position position() const override {
    const KtPlace place = counter_.coming();
    return {place.instruction, place.iteration};
  }

  bool is_wide() const override { return reader_->is_wide(); }

  /// What can be read but once is only read forward.
  void seek(Position position) override {
    if (!once_) return begin(position);
    if (position < this->position()) refuse(position);
    from_ = position;
    begun_ = false;
  }

 private:
  /// The next event or record, wherever it is.
  bool next_of_any(TraceRecord& out) {
    reader_->form();  // what is noted of the first record is after the mark
    if (next_event(out)) return true;
    if (!reader_->next(out.record)) return false;
    if (reader_->is_wide() && !wide_) {
      throw UsageError(path_ + ": a trace of 64 bits, whose addresses do not fit here");
    }
    out.is_event = false;
    if (out.record.kind == KtRecord::Kind::instruction) {
      const KtInstruction& i = out.record.instruction;
      set_place(out, counter_.next(i.eip, i.bytes(), i.address_count, i.bits == 64));
    } else {
      set_place(out, counter_.coming());
    }
    return true;
  }

  /// What was noted before the next record; false: there is no event left to hand out.
  bool next_event(TraceRecord& out) {
    while (const KtNote* const note = notes_.next(before_ + reader_->offset())) {
      if (note->kind == KtNote::Kind::place) {
        counter_.set(note->place);
      } else if (events_) {
        out.is_event = true;
        out.event = *note;
        set_place(out, note->place);
        return true;
      }
    }
    return false;
  }

  void begin(Position position) {
    counter_ = {};
    before_ = 0;
    begun_ = false;
    from_ = position;
    const KtSegment* const segment = notes_.seek(position.instruction, position.iteration);
    if (segment != nullptr) {
      counter_.set(segment->place);
      before_ = segment->kt_offset;
    }
    if (before_ == 0) {
      reader_ = std::make_unique<KtReader>(path_);
      return;
    }
    const KtForm form = KtReader(path_).form();
    reader_ = std::make_unique<KtReader>(path_, segment->file_offset);
    reader_->set_form(form);
  }

  [[noreturn]] void refuse(Position position) const {
    throw UsageError(path_ + ": instruction " + position_text(position) +
                     " was read before, and what comes through a pipe is read only once");
  }

  static void set_place(TraceRecord& out, const KtPlace& place) {
    out.position = {place.instruction, place.iteration};
    out.bits = place.bits;
  }

  std::string path_;
  bool once_;
  bool events_;
  bool wide_;
  KtNoteReader notes_;
  std::unique_ptr<KtReader> reader_;
  TraceRecord record_;
  KtCounter counter_;
  std::uint64_t before_ = 0;  ///< bytes of KT before those that reader_ reads
  Position from_;
  bool begun_ = false;  ///< from_ was reached
};

std::unique_ptr<TraceReader::Source> open_source(const std::string& path,
                                                 const TraceReaderOptions& options) {
  constexpr std::size_t kMagicBytes = 8;
  if (is_container(read_head(parse_recording_name(path).path, kMagicBytes))) {
    return std::make_unique<RecordingSource>(path, options);
  }
  if (options.clocks)
    throw UsageError(path + ": expected a recording, found a trace: it has no clocks");
  return std::make_unique<KtFileSource>(path, options);
}

}  // namespace

TraceReader::TraceReader(const std::string& path, const TraceReaderOptions& options)
    : source_(open_source(path, options)) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;

bool TraceReader::next(TraceRecord& out) {
  const TraceRecord* const record = next();
  if (record != nullptr) out = *record;
  return record != nullptr;
}
double TraceReader::clock_hz() const { return source_->clock_hz(); }
Position TraceReader::position() const { return source_->position(); }
void TraceReader::seek(Position position) { source_->seek(position); }

}  // namespace citcat
