#include "cli/shares/parallel_trace.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/part_failure.h"
#include "formats/io/error.h"
#include "formats/io/shared_ring.h"
#include "replay/run/replay_session.h"
#include "replay/run/replay_timeline.h"

namespace citcat {
namespace {

/// What a part gives: 8 to 20 bytes an instruction.
constexpr std::size_t kRingBytes = std::size_t{128} << 20;

/// A range of the trace, and where the replay of it begins.
struct Part : ReplayPart {
  bool first = false, last = false;  ///< of the trace
  ExecutionPath path = ExecutionPath::blocks;
};

/// Before each piece of what a process tells.
struct PieceHeader {
  enum class Kind : std::uint32_t { records, note, text, result, skipped };
  Kind kind = Kind::records;
  std::uint32_t bytes = 0;
};

/// What a process tells at the end of a part.
struct PartResult {
  ReplayReport::End end = ReplayReport::End::complete;
  bool failed = false;  ///< then the last text is the message
  PartFailure failure = PartFailure::system;
  std::uint64_t instructions = 0, interrupts = 0, exceptions = 0, io_reads = 0, io_writes = 0,
                external_writes = 0, kt_instructions = 0;
  Position diverged_at;
  std::uint64_t transaction = ~std::uint64_t{0};
};

template <class T>
std::span<const std::uint8_t> bytes_of(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}

/// From one of PartResult and ReplayReport to the other.
template <class From, class To>
void copy_counts(const From& from, To& to) {
  to.end = from.end;
  to.instructions = from.instructions;
  to.interrupts = from.interrupts;
  to.exceptions = from.exceptions;
  to.io_reads = from.io_reads;
  to.io_writes = from.io_writes;
  to.external_writes = from.external_writes;
}

PartResult to_part(const ReplayReport& report) {
  PartResult part;
  copy_counts(report, part);
  if (report.divergence) {
    part.diverged_at = report.divergence->position;
    part.transaction = report.divergence->transaction;
  }
  return part;
}

/// `texts`: reason, expected and found of a divergence.
ReplayReport to_report(const PartResult& part, const std::vector<std::string>& texts) {
  ReplayReport report;
  copy_counts(part, report);
  if (part.end == ReplayReport::End::diverged) {
    report.divergence =
        Divergence{part.diverged_at, part.transaction, texts.at(0), texts.at(1), texts.at(2), {}};
  }
  return report;
}

// ---- A process that expands parts ---------------------------------------------------------------

/// Its side of the ring.
class PieceWriter final : public TraceSink {
 public:
  PieceWriter(SharedRing& ring, bool notes) : ring_(ring), notes_(notes) {}
  void write(std::span<const std::uint8_t> records) override {
    tell(PieceHeader::Kind::records, records);
  }
  bool takes_wide() override { return true; }
  bool keeps_notes() const override { return notes_; }
  /// As from the beginning of the part.
  void note(const KtNote& note) override {
    KtNote told = note;
    told.at -= part_;
    tell(PieceHeader::Kind::note, bytes_of(told));
  }
  void finish() override {}
  /// The records after so many bytes are of the next part.
  void begin_part(std::uint64_t bytes) { part_ = bytes; }
  void text(const std::string& text) {
    tell(PieceHeader::Kind::text,
         {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  void result(const PartResult& result) { tell(PieceHeader::Kind::result, bytes_of(result)); }

 private:
  void tell(PieceHeader::Kind kind, std::span<const std::uint8_t> bytes) {
    return_to_beginning();
    const PieceHeader header{kind, static_cast<std::uint32_t>(bytes.size())};
    if (!ring_.write(bytes_of(header)) || !ring_.write(bytes)) std::_Exit(1);  // nobody reads on
  }
  /// As long as the reader keeps pace, a small part of the ring will do.
  void return_to_beginning() {
    constexpr std::size_t kPart = std::size_t{2} << 20;
    const std::size_t skipped = ring_.skippable(kPart);
    if (skipped <= sizeof(PieceHeader)) return;
    const auto bytes = static_cast<std::uint32_t>(skipped - sizeof(PieceHeader));
    if (!ring_.write(bytes_of(PieceHeader{PieceHeader::Kind::skipped, bytes}))) std::_Exit(1);
    ring_.skip(bytes);
  }
  SharedRing& ring_;
  bool notes_;
  std::uint64_t part_ = 0;
};

void expand(const RecordingFile& file, const Checkpoints& checkpoints,
            const std::vector<Part>& parts, const KtOptions& kt, PieceWriter& out) {
  KtWriter writer(out, kt_form(file.recording().initial.model), false);
  KtSink trace(writer, kt);
  std::unique_ptr<ReplaySession> run;
  for (const Part& part : parts) {
    trace.set_range({part.range.from, part.first ? kt.from_iteration : 0},
                    part.last ? Position{kt.to, kt.to_iteration} : Position{part.range.to, 0},
                    part.first && kt.begins_trace);
    out.begin_part(writer.size());
    if (run) {
      run->go_to(part.start, part.range.to);
    } else {
      SessionOptions options;
      options.to = part.range.to;
      options.start = part.start;
      options.checkpoints = &checkpoints;
      options.path = part.path;
      run = std::make_unique<ReplaySession>(file, &trace, options);
    }
    const std::uint64_t before = writer.instructions();
    const ReplayReport report = run->run();
    if (part.last) trace.end(report.instructions);
    writer.flush();
    if (const auto& d = report.divergence) {
      for (const std::string& text : {d->reason, d->expected, d->found}) out.text(text);
    }
    PartResult result = to_part(report);
    result.kt_instructions = writer.instructions() - before;
    out.result(result);
    if (report.divergence) return;
  }
}

/// What a process is for; it ends with that.
[[noreturn]] void work(const RecordingFile& file, const Checkpoints& checkpoints,
                       const std::vector<Part>& parts, const KtOptions& kt, SharedRing& ring,
                       bool notes) {
  // The handlers of the process that forked look after outputs that are its own.
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) std::signal(s, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  PieceWriter out(ring, notes);
  try {
    expand(file, checkpoints, parts, kt, out);
  } catch (const std::exception& e) {
    out.text(e.what());
    PartResult result;
    result.failed = true;
    result.failure = failure_of(e);
    out.result(result);
  }
  std::_Exit(0);
}

// ---- The process that puts them together --------------------------------------------------------

class TraceWorker {
 public:
  TraceWorker(const RecordingFile& file, const Checkpoints& checkpoints,
              const std::vector<Part>& parts, const KtOptions& kt, bool notes)
      : ring_(kRingBytes) {
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ < 0) {
      throw IoError(std::string("a process for a part of the trace: ") + std::strerror(errno));
    }
    if (process_ == 0) work(file, checkpoints, parts, kt, ring_, notes);
  }
  ~TraceWorker() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  TraceWorker(const TraceWorker&) = delete;
  TraceWorker& operator=(const TraceWorker&) = delete;

  /// Hands on what the process tells of its next part, and waits for the end of it.
  ReplayReport take(KtWriter& writer) {
    std::vector<std::string> texts;
    const std::uint64_t begin = writer.size();
    for (;;) {
      PieceHeader header;
      const auto head = wait_for(sizeof header);
      std::memcpy(&header, head.data(), sizeof header);
      ring_.consume(sizeof header);
      const auto piece = wait_for(header.bytes);
      switch (header.kind) {
        case PieceHeader::Kind::records:
          writer.raw(piece, 0);
          break;
        case PieceHeader::Kind::skipped:
          break;
        case PieceHeader::Kind::note: {
          KtNote note;
          std::memcpy(&note, piece.data(), sizeof note);
          writer.note(note, begin + note.at - writer.size());
          break;
        }
        case PieceHeader::Kind::text:
          texts.emplace_back(piece.begin(), piece.end());
          break;
        case PieceHeader::Kind::result: {
          PartResult result;
          std::memcpy(&result, piece.data(), sizeof result);
          ring_.consume(piece.size());
          if (result.failed)
            throw_of_part(result.failure, "in a part of the trace: " + texts.back());
          writer.raw({}, result.kt_instructions);
          return to_report(result, texts);
        }
      }
      ring_.consume(piece.size());
    }
  }

 private:
  /// The next `bytes`, as soon as they are there.
  std::span<const std::uint8_t> wait_for(std::size_t bytes) {
    for (;;) {
      check_interrupt();  // also where there is always something to read
      // Looked at before the ring: what the process wrote before it ended is there then.
      const bool ended = process_ <= 0 || ::waitpid(process_, nullptr, WNOHANG) != 0;
      if (ended) process_ = 0;
      const auto readable = ring_.readable();
      if (readable.size() >= bytes) return readable.first(bytes);
      if (ended) throw InternalError("the process of a part of the trace ended without a result");
      SharedRing::wait();
    }
  }

  SharedRing ring_;
  pid_t process_ = 0;
};

}  // namespace

TraceRunResult run_parallel_trace(const RecordingFile& file, const KtOptions& kt, KtWriter& writer,
                                  const TraceRunOptions& options, unsigned processes,
                                  const Console& console) {
  const Checkpoints checkpoints(file);
  std::vector<Part> parts;
  for (const ReplayPart& part :
       part_at_checkpoints(checkpoints, options.range, options.policy.strict, processes)) {
    parts.push_back({part});
  }
  if (parts.size() <= 1) {
    console.warn(
        "one process does it all: the archive has no checkpoints at which to divide the trace "
        "(see citcat checkpoint)");
    KtSink trace(writer, kt);
    const TraceRunResult result = run_trace(file, &trace, options, console);
    trace.end(result.report.instructions);
    return result;
  }
  parts.front().first = parts.back().last = true;
  for (Part& part : parts) part.path = options.path;
  const std::uint64_t end =
      std::min(options.range.to, file.recording().instructions.value_or(options.range.to));
  Progress progress = console.progress("replaying", "instructions", end);
  std::vector<std::unique_ptr<TraceWorker>> workers;
  for (std::size_t w = 0; w < std::min<std::size_t>(processes, parts.size()); ++w) {
    std::vector<Part> its_own;
    for (std::size_t i = w; i < parts.size(); i += processes) its_own.push_back(parts[i]);
    workers.push_back(
        std::make_unique<TraceWorker>(file, checkpoints, its_own, kt, writer.keeps_notes()));
  }
  TraceRunResult result;
  result.started_at = parts.front().start.instruction;
  for (std::size_t i = 0; i < parts.size() && result.sure(); ++i) {
    result.report = workers[i % processes]->take(writer);
    progress.update(result.report.instructions);
  }
  return result;
}

}  // namespace citcat
