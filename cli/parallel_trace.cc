#include "cli/parallel_trace.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "formats/error.h"

namespace citcat {
namespace {

/// Parts for each process: enough that the last ones end together, and few, because each translates
/// the code it meets anew.
constexpr std::uint64_t kPartsPerProcess = 6;
/// Instructions of a part, where there are enough: a second or so, of which a few tenths are spent
/// on code met anew.
constexpr std::uint64_t kWorthwhile = std::uint64_t{1} << 24;

/// What a part's process tells of itself, at the end of its file.
struct PartResult {
  ReplayReport::End end = ReplayReport::End::complete;
  std::uint64_t instructions = 0, interrupts = 0, exceptions = 0, io_reads = 0, io_writes = 0,
                external_writes = 0, kt_instructions = 0, started_at = 0;
  std::uint64_t differs_before = ~std::uint64_t{0};
  Position diverged_at;
  std::uint64_t transaction = ~std::uint64_t{0};
  std::uint32_t failed = 0;
  std::array<std::uint32_t, 3> text_bytes{};  ///< before it: error or reason, expected, found
};

class DescriptorSink final : public ByteSink {
 public:
  explicit DescriptorSink(int descriptor) : descriptor_(descriptor) {}
  void write(std::span<const std::uint8_t> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw IoError(std::string("a part of the trace: ") + std::strerror(errno));
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void finish() override {}

 private:
  int descriptor_;
};

/// A range replayed by a process of its own.
class Part {
 public:
  Part(const std::string& recording, const KtOptions& kt, const TraceRunOptions& options)
      : file_(::open(std::filesystem::temp_directory_path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC,
                     0600)) {
    if (file_ < 0) {
      throw IoError(std::string("a file for a part of the trace: ") + std::strerror(errno));
    }
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ < 0) throw IoError(std::string("a process for a part: ") + std::strerror(errno));
    if (process_ == 0) {
      // The handlers of this process look after outputs that are not the part's.
      for (const int s : {SIGINT, SIGTERM, SIGHUP}) std::signal(s, SIG_DFL);
      expand(recording, kt, options);
      std::_Exit(0);
    }
  }
  ~Part() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    ::close(file_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  bool running() {
    if (process_ <= 0) return false;
    if (::waitpid(process_, &status_, WNOHANG) == 0) return true;
    process_ = 0;
    return false;
  }
  /// Once it has ended.
  TraceRunResult take(KtWriter& writer);

 private:
  void expand(const std::string& recording, const KtOptions& kt, const TraceRunOptions& options);

  int file_;  ///< without a name: gone with the last process that has it
  pid_t process_ = 0;
  int status_ = 0;
};

PartResult to_part(const TraceRunResult& run, std::uint64_t kt_instructions) {
  PartResult part;
  part.end = run.report.end;
  part.instructions = run.report.instructions;
  part.interrupts = run.report.interrupts;
  part.exceptions = run.report.exceptions;
  part.io_reads = run.report.io_reads;
  part.io_writes = run.report.io_writes;
  part.external_writes = run.report.external_writes;
  part.kt_instructions = kt_instructions;
  part.started_at = run.started_at;
  part.differs_before = run.differs_before.value_or(~std::uint64_t{0});
  if (run.report.divergence) {
    part.diverged_at = run.report.divergence->position;
    part.transaction = run.report.divergence->transaction;
  }
  return part;
}

TraceRunResult to_result(const PartResult& part, const std::array<std::string, 3>& texts) {
  TraceRunResult result;
  result.report.end = part.end;
  result.report.instructions = part.instructions;
  result.report.interrupts = part.interrupts;
  result.report.exceptions = part.exceptions;
  result.report.io_reads = part.io_reads;
  result.report.io_writes = part.io_writes;
  result.report.external_writes = part.external_writes;
  result.started_at = part.started_at;
  if (part.differs_before != ~std::uint64_t{0}) result.differs_before = part.differs_before;
  if (part.end == ReplayReport::End::diverged) {
    result.report.divergence =
        Divergence{part.diverged_at, part.transaction, texts[0], texts[1], texts[2], {}};
  }
  return result;
}

void Part::expand(const std::string& recording, const KtOptions& kt,
                  const TraceRunOptions& options) {
  DescriptorSink sink(file_);
  PartResult result;
  std::array<std::string, 3> texts;
  try {
    // Opened anew: processes that share a descriptor share its position.
    const RecordingFile file = RecordingFile::open(recording);
    KtWriter writer(sink);
    KtSink trace(writer, kt);
    const Console silent(true);
    const TraceRunResult run = run_trace(file, &trace, options, silent);
    writer.flush();
    result = to_part(run, writer.instructions());
    if (const auto& d = run.report.divergence) texts = {d->reason, d->expected, d->found};
  } catch (const std::exception& e) {
    result.failed = 1;
    texts[0] = e.what();
  }
  const auto bytes = [](const auto* p, std::size_t n) {
    return std::span(reinterpret_cast<const std::uint8_t*>(p), n);
  };
  try {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      result.text_bytes[i] = static_cast<std::uint32_t>(texts[i].size());
      sink.write(bytes(texts[i].data(), texts[i].size()));
    }
    sink.write(bytes(&result, sizeof result));
  } catch (const std::exception&) {
    std::_Exit(1);  // the reader finds no result
  }
}

TraceRunResult Part::take(KtWriter& writer) {
  PartResult result;
  off_t end = ::lseek(file_, 0, SEEK_END);
  const auto read_at = [&](void* to, std::size_t n, off_t at) {
    if (::pread(file_, to, n, at) != static_cast<ssize_t>(n)) {
      throw IoError("a part of the trace could not be read back");
    }
  };
  if (status_ != 0 || end < static_cast<off_t>(sizeof result)) {
    throw InternalError("the process of a part ended without a result");
  }
  end -= static_cast<off_t>(sizeof result);
  read_at(&result, sizeof result, end);
  std::array<std::string, 3> texts;
  for (std::size_t i = texts.size(); i-- > 0;) {
    texts[i].resize(result.text_bytes[i]);
    end -= static_cast<off_t>(texts[i].size());
    read_at(texts[i].data(), texts[i].size(), end);
  }
  if (result.failed != 0) throw IoError("in a part of the trace: " + texts[0]);
  std::vector<std::uint8_t> piece(std::size_t{1} << 20);
  std::uint64_t instructions = result.kt_instructions;
  for (off_t at = 0; at < end;) {
    const auto n =
        static_cast<std::size_t>(std::min<off_t>(end - at, static_cast<off_t>(piece.size())));
    read_at(piece.data(), n, at);
    writer.raw({piece.data(), n}, instructions);
    instructions = 0;
    at += static_cast<off_t>(n);
  }
  return to_result(result, texts);
}

/// Where to part the range: just behind checkpoints.
std::vector<ReplayRange> part_ranges(const RecordingFile& file, const ReplayRange& range,
                                     unsigned processes) {
  const Checkpoints checkpoints(file);
  std::vector<std::uint64_t> places;
  for (const CheckpointSeries& series : checkpoints.series()) {
    if (series.run().engine != replay_identity() || series.entries().size() <= places.size())
      continue;
    places.clear();
    for (const CheckpointEntry& e : series.entries()) places.push_back(e.instruction + 1);
  }
  const std::uint64_t last = places.empty() ? 0 : std::min(range.to, places.back());
  const std::uint64_t span = last > range.from ? last - range.from : 0;
  const std::uint64_t least =
      std::max(span / (processes * kPartsPerProcess) + 1, std::min(kWorthwhile, span / processes));
  std::vector<ReplayRange> ranges{range};
  for (const std::uint64_t place : places) {
    if (place >= range.to || place < ranges.back().from + least) continue;
    ranges.back().to = place;
    ranges.push_back({place, range.to});
  }
  return ranges;
}

}  // namespace

TraceRunResult run_parallel_trace(const RecordingFile& file, const KtOptions& kt, KtWriter& writer,
                                  const TraceRunOptions& options, unsigned processes,
                                  const Console& console) {
  const std::vector<ReplayRange> ranges = part_ranges(file, options.range, processes);
  if (ranges.size() == 1) {
    console.warn(
        "one process does it all: the archive has no checkpoints to part the trace at "
        "(see citcat checkpoint)");
    KtSink trace(writer, kt);
    return run_trace(file, &trace, options, console);
  }
  const std::uint64_t end =
      std::min(options.range.to, file.recording().instructions.value_or(options.range.to));
  Progress progress = console.progress("replaying", "instructions", end);
  std::deque<std::unique_ptr<Part>> parts;
  TraceRunResult result;
  const std::string name = file.container().path() + "@" + std::to_string(file.number());
  std::size_t next = 0;
  for (std::size_t taken = 0; taken < ranges.size(); ++taken) {
    for (;;) {
      const auto running =
          std::count_if(parts.begin(), parts.end(), [](const auto& p) { return p->running(); });
      if (next < ranges.size() && running < static_cast<std::ptrdiff_t>(processes) &&
          parts.size() < 3 * std::size_t{processes}) {
        KtOptions part_kt = kt;
        TraceRunOptions part_options = options;
        part_options.range = ranges[next];
        part_kt.from = ranges[next].from;
        part_kt.to = ranges[next].to;
        parts.push_back(std::make_unique<Part>(name, part_kt, part_options));
        ++next;
      } else if (!parts.front()->running()) {
        break;
      } else {
        ::usleep(2000);
      }
      check_interrupt();
    }
    const std::uint64_t started_at = result.started_at;
    result = parts.front()->take(writer);
    parts.pop_front();
    if (taken != 0) result.started_at = started_at;
    progress.update(result.report.instructions);
    if (!result.sure()) break;
  }
  return result;
}

}  // namespace citcat
