#include "replay/trace_reader.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "events/recording_file.h"
#include "formats/container.h"
#include "formats/input.h"
#include "formats/kt_index.h"
#include "formats/once_input.h"
#include "replay/checkpoints.h"
#include "replay/digest_sink.h"
#include "replay/end_sink.h"
#include "replay/event_placer.h"
#include "replay/kt_sink.h"
#include "replay/replayer.h"
#include "replay/verifier.h"

namespace citcat {

namespace {

// ---- A recording --------------------------------------------------------------------------------

/// Keeps what a replay does as records.
class RecordSink final : public Sink {
 public:
  explicit RecordSink(const KtOptions& options) : options_(options) {}

  Detail detail() const override {
    return options_.process_records ? Detail::accesses : Detail::instructions;
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    if (now.instruction < from) return;
    KtRecord record;
    record.instruction = kt_instruction(e, options_);
    records.push_back({record, now});
  }
  void address_space(std::uint32_t cr3, Position now) override {
    KtRecord record;
    record.kind = KtRecord::Kind::process;
    record.pid = kt_process(cr3);
    add_other(record, now);
  }
  void mapping(LinearAddr page, PhysAddr frame, Position now) override {
    KtRecord record;
    record.kind = KtRecord::Kind::translation;
    record.frame = frame.page();
    record.page = page.value & ~kPageMask;
    add_other(record, now);
  }

  std::uint64_t from = 0;  ///< earlier instructions are not kept
  std::vector<TraceRecord> records;

 private:
  void add_other(const KtRecord& record, Position now) {
    if (options_.process_records && now.instruction >= from) records.push_back({record, now});
  }
  KtOptions options_;
};

class RecordingSource final : public TraceReader::Source {
 public:
  RecordingSource(const std::string& path, const TraceReaderOptions& options)
      : options_(options),
        file_(RecordingFile::open(path)),
        checkpoints_(file_),
        sink_(kt_options(options)) {
    place_events(file_, {});
    begin(std::nullopt);
  }

  bool next(TraceRecord& out) override {
    while (at_ == sink_.records.size()) {
      if (ended_) return false;
      replay_on();
    }
    out = sink_.records[at_++];
    return true;
  }

  void seek(std::uint64_t instruction) override {
    std::optional<Checkpoints::Start> start;
    if (options_.use_checkpoints) start = checkpoints_.start_for({instruction, ~std::uint64_t{0}});
    const std::uint64_t here = failed_ ? ~std::uint64_t{0} : position();
    // What was replayed beyond the wanted instruction is of no use: its records may be gone.
    const bool forward = instruction > here || (here == 0 && instruction == 0);
    if (!forward || (start && start->instruction > here)) begin(start);
    sink_.records.clear();
    at_ = 0;
    sink_.from = instruction;
  }

  std::uint64_t instructions() const override { return position(); }

 private:
  static constexpr std::uint64_t kStep = std::uint64_t{1} << 14;  ///< instructions at a time

  static KtOptions kt_options(const TraceReaderOptions& options) {
    KtOptions kt;
    kt.offsets = options.offsets;
    kt.process_records = options.process_records;
    return kt;
  }
  std::uint64_t position() const { return replayer_->machine().position().instruction; }

  /// Compares the replay with the evidence, or with the digests in its place.
  void check() {
    if (file_.meta().evidence == EvidenceMode::full) {
      VerifierOptions options;
      options.believed = file_.believed();
      verifier_ = std::make_unique<Verifier>(file_.recording(), file_.evidence(), options);
      sinks_.add(*verifier_);
    } else if (!file_.digests().empty()) {
      digests_ = std::make_unique<DigestSink>();
    }
  }

  /// Makes a replay ready that stands at the beginning or at a checkpoint.
  void begin(const std::optional<Checkpoints::Start>& start) {
    const bool full = file_.meta().evidence == EvidenceMode::full;
    sinks_ = SinkList();
    verifier_.reset();
    digests_.reset();
    adoptions_.reset();
    end_ = ~std::uint64_t{0};
    const std::vector<ReplayDigest>& digests = file_.digests();
    std::optional<Position> end;
    if (start) {
      end = start->end;
      adoptions_ = checkpoints_.adoptions_from(*start);
    } else if (!full) {
      end = file_.recording().end;
      if (!end && !digests.empty()) end = Position{digests.back().instruction, 0};
      const std::vector<Adoption>& kept = file_.recording().adoptions;
      if (!kept.empty()) adoptions_ = std::make_unique<AdoptionSink>(kept, Position{});
    }
    if (adoptions_) sinks_.add(*adoptions_);
    if (end && EndSink::needed(*end, end_)) sinks_.add(end_sink_.emplace(*end));
    if (end) end_ = EndSink::stop(*end, end_);
    if (!start && options_.check) check();
    sinks_.add(sink_);
    if (digests_) sinks_.add(*digests_);
    ReplayOptions replay;
    if (full) replay.evidence = [this] { return file_.evidence(); };
    replayer_ = std::make_unique<Replayer>(file_.recording(), &sinks_, std::move(replay));
    if (verifier_) verifier_->attach(replayer_->machine());
    if (adoptions_) adoptions_->attach(replayer_->machine());
    if (start) checkpoints_.restore(*start, *replayer_);
    passed_ = start;
    sink_.records.clear();
    sink_.from = 0;
    at_ = 0;
    ended_ = failed_ = false;
  }

  /// Replays a little further. What was sure before a divergence is kept and handed out first.
  void replay_on() {
    if (failed_) throw TraceDiverged(failure_);
    sink_.records.clear();
    at_ = 0;
    std::uint64_t to = std::min(end_, std::max(position(), sink_.from) + kStep);
    const auto next = passed_ ? checkpoints_.after(*passed_) : std::nullopt;
    if (next) to = std::min(to, next->instruction);
    const ReplayReport report = replayer_->run_to(to);
    if (report.end == ReplayReport::End::diverged) {
      fail(*report.divergence);
    } else if (next && position() == next->instruction) {
      if (!checkpoints_.agrees(*next, *replayer_)) {
        fail({{next->instruction, 0},
              ~std::uint64_t{0},
              "the replay from a checkpoint is not the one that was checked",
              "",
              "",
              {}});
      }
      passed_ = next;
    } else if (report.instructions < to || to == end_) {
      finish(report);
    }
  }

  void finish(const ReplayReport& report) {
    ended_ = true;
    try {
      if (verifier_ && report.end == ReplayReport::End::complete) {
        verifier_->finish(replayer_->machine().position());
      }
    } catch (const ReplayStopped& stop) {
      fail(make_divergence(stop));
    }
    if (!digests_) return;
    const auto differs = first_difference(file_.digests(), digests_->finish(report.instructions),
                                          report.instructions);
    if (differs) {
      fail({{*differs, 0},
            ~std::uint64_t{0},
            "the replay is not the one that was verified",
            "",
            "",
            {}});
    }
  }

  void fail(const Divergence& d) {
    failed_ = true;
    ended_ = false;
    failure_ =
        file_.container().path() + ": diverged before or at " + place_text(d) + ": " + d.reason;
  }

  TraceReaderOptions options_;
  RecordingFile file_;
  Checkpoints checkpoints_;
  RecordSink sink_;
  SinkList sinks_;
  std::unique_ptr<Verifier> verifier_;
  std::unique_ptr<DigestSink> digests_;
  std::unique_ptr<AdoptionSink> adoptions_;
  std::unique_ptr<Replayer> replayer_;
  std::optional<Checkpoints::Start> passed_;  ///< last checkpoint of the series begun at
  std::optional<EndSink> end_sink_;
  std::uint64_t end_ = 0;
  std::size_t at_ = 0;
  bool ended_ = false, failed_ = false;
  std::string failure_;
};

// ---- A KT file ----------------------------------------------------------------------------------

class KtFileSource final : public TraceReader::Source {
 public:
  explicit KtFileSource(std::string path) : path_(std::move(path)), once_(is_once_input(path_)) {
    begin();
  }

  bool next(TraceRecord& out) override {
    while (reader_->next(out.record)) {
      out.position = {instruction_, 0};
      if (out.record.kind == KtRecord::Kind::instruction) ++instruction_;
      if (out.position.instruction >= from_) return true;
    }
    return false;
  }

  void seek(std::uint64_t instruction) override {
    if (once_) return go_on_to(instruction);
    begin();
    from_ = instruction;
    if (reader_->input().compression() == Compression::none) return;
    for (const KtSegment& segment : index()) {
      if (segment.first_instruction > instruction) break;
      segment_ = segment;
    }
    if (segment_.first_instruction == 0) return;
    reader_ = std::make_unique<KtReader>(path_, segment_.file_offset);
    instruction_ = segment_.first_instruction;
  }

  std::uint64_t instructions() const override { return instruction_; }

 private:
  void begin() {
    reader_ = std::make_unique<KtReader>(path_);
    instruction_ = from_ = 0;
    segment_ = {};
  }
  /// What can be read but once is only read forward.
  void go_on_to(std::uint64_t instruction) {
    if (instruction < instruction_) {
      throw UsageError(path_ + ": instruction " + std::to_string(instruction) +
                       " was read before, and what comes through a pipe is read only once");
    }
    from_ = instruction;
  }
  /// Empty for a file without index: it is then read from the beginning.
  std::vector<KtSegment> index() const {
    try {
      return read_kt_index(path_);
    } catch (const FormatError&) {
      return {};
    }
  }

  std::string path_;
  bool once_;
  std::unique_ptr<KtReader> reader_;
  KtSegment segment_;
  std::uint64_t instruction_ = 0, from_ = 0;
};

std::unique_ptr<TraceReader::Source> open_source(const std::string& path,
                                                 const TraceReaderOptions& options) {
  constexpr std::size_t kMagicBytes = 8;
  if (is_container(read_head(parse_recording_name(path).path, kMagicBytes))) {
    return std::make_unique<RecordingSource>(path, options);
  }
  return std::make_unique<KtFileSource>(path);
}

}  // namespace

TraceReader::TraceReader(const std::string& path, const TraceReaderOptions& options)
    : source_(open_source(path, options)) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;

std::uint64_t TraceReader::instructions() const { return source_->instructions(); }

bool TraceReader::next(TraceRecord& out) { return source_->next(out); }
void TraceReader::seek(std::uint64_t instruction) { source_->seek(instruction); }

}  // namespace citcat
