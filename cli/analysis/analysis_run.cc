#include "cli/analysis/analysis_run.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "cli/analysis/analysis_output.h"
#include "cli/interrupt.h"
#include "cli/parsing/option_message.h"
#include "cli/part_failure.h"
#include "cli/replay_progress.h"
#include "cli/stream_start.h"
#include "events/archive/container.h"
#include "events/archive/machine_file.h"
#include "events/processors/bus_turns.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "replay/run/replay_session.h"
#include "replay/run/replay_timeline.h"
#include "replay/session/first_entry.h"
#include "tools/guest/recording_symbols.h"
#include "tools/host/joined_observer.h"
#include "tools/host/tool_host.h"
#include "tools/list/tool_list.h"

namespace citcat {

namespace {

using tools::Analysis;
using tools::HostOptions;
using tools::NameSource;
using tools::Scope;
using tools::Setup;
using tools::ToolHost;

/// The windows of a plan, if it has any.
std::optional<tools::WindowPlan> windows_of(const AnalysisPlan& plan, std::uint64_t end,
                                            const NameSource& names) {
  if (plan.window.empty()) return std::nullopt;
  return for_option("--window", [&] { return tools::WindowPlan::parse(plan.window, end, names); });
}

std::optional<Scope> scope_of(const AnalysisPlan& plan, const Setup& setup) {
  if (plan.where.empty()) return std::nullopt;
  return Scope(plan.where, *setup.names, setup.processor, setup.processors);
}

/// Names the processor of `file` where it is one of a machine's.
void share_bus(const RecordingFile& file, Setup& setup) {
  std::optional<MachineFile> found = MachineFile::find(file.container().path());
  if (!found) return;
  setup.processor = file.number();
  setup.processors = file.recordings();
  setup.bus_turns = [machine = std::move(*found)] {
    const std::vector<RecordingFile> all = open_processors(machine);
    return std::make_shared<const BusTurns>(shared_bus_of(machine, all), all.size());
  };
}

Setup setup_of(const RecordingFile& file, const AnalysisPlan& plan, const NameSource& names,
               bool begins) {
  Setup setup;
  setup.names = &names;
  setup.recording = &file.recording();
  setup.machine = tools::MachineFacts::of(file.recording());
  setup.from = plan.range.from;
  setup.to = plan.range.to;
  setup.sampled = !plan.sample.empty();
  setup.begins = begins;
  setup.output = plan.output;
  setup.spool = plan.spool;
  if (file.recordings() > 1) share_bus(file, setup);
  (void)scope_of(plan, setup);  // a wrong condition is refused before anything runs
  return setup;
}

/// Whether a tool writes what cannot be begun anew. A part of a run goes to a file of our own.
bool writes_stream(const AnalysisPlan& plan) {
  if (plan.spool) return false;
  return std::any_of(plan.tools.begin(), plan.tools.end(), [&](const std::string& tool) {
    return !can_be_taken_back(tools::ToolOptions::parse(tool).text("to", plan.output));
  });
}

}  // namespace

std::unique_ptr<Analysis> make_analysis(const AnalysisPlan& plan, const Setup& setup) {
  std::vector<tools::ToolOptions> requests;
  for (const std::string& tool : plan.tools) {
    requests.push_back(tools::ToolOptions::parse(tool, plan.tools_option));
    require_tool(requests.back().tool());
  }
  Setup mine = setup;
  mine.isolate = plan.isolate;
  return std::make_unique<Analysis>(
      tools::find_tools(std::move(requests)), mine,
      plan.by.empty() ? std::vector<tools::Split>{} : tools::parse_splits(plan.by));
}

std::string why_serial(const AnalysisPlan& plan, const Setup& setup) {
  if (!plan.sample.empty()) return "samples need one replay of the whole run";
  const auto analysis = make_analysis(plan, setup);
  if (analysis->walks()) return "a processor's TLB must be followed from the beginning";
  CITCAT_ASSERT(setup.names != nullptr);
  const auto scope = scope_of(plan, setup);
  const auto& by = analysis->by();
  if (setup.names->names_processes() &&
      (std::find(by.begin(), by.end(), tools::Split::process) != by.end() ||
       (scope && scope->names_processes()))) {
    return "names of processes must be followed from the beginning";
  }
  const bool splits = std::find(by.begin(), by.end(), tools::Split::interrupt) != by.end();
  if (splits || (scope && scope->needs_history())) {
    return "open interrupts and system calls must be followed from the beginning";
  }
  const auto windows = windows_of(plan, ~std::uint64_t{0}, *setup.names);
  if (windows && windows->is_controlled())
    return "another process opens and closes windows as the run goes on";
  if (windows && !windows->by_position()) {
    return "the events that open and close windows must be counted from the beginning";
  }
  const std::vector<std::string> serial = analysis->serial_tools();
  if (!serial.empty()) return serial.front() + " cannot join the results of parts";
  return "";
}

AnalysisResult run_analysis(const RecordingFile& file, const AnalysisPlan& plan, bool begins,
                            const Console& console) {
  AnalysisResult result;
  result.symbols = std::make_unique<const Symbols>(tools::known_symbols(file, plan.symbols));
  result.names = std::make_unique<tools::GuestNames>(*result.symbols);
  tools::GuestNames& names = *result.names;
  const Setup setup = setup_of(file, plan, names, begins);
  const std::optional<Scope> scope = scope_of(plan, setup);
  const bool from_beginning = !why_serial(plan, setup).empty();
  HostOptions host_options;
  host_options.isolated_tables = begins_with_isolated_tables(file.recording());
  host_options.from = plan.range.from;
  host_options.to = plan.range.to;
  host_options.scope = scope ? &*scope : nullptr;
  host_options.names = &names;
  const std::uint64_t run_end = file.recording().instructions.value_or(0);
  auto windows = windows_of(plan, run_end, names);
  if (windows) {
    windows->on_refusal([&console](const std::string& why) { console.warn(why); });
    host_options.windows = &*windows;
  }
  std::optional<tools::WindowPlan> samples;
  if (!plan.sample.empty()) {
    samples = for_option(
        "--sample", [&] { return tools::WindowPlan::parse_sample(plan.sample, run_end, names); });
    host_options.samples = &*samples;
  }

  std::unique_ptr<ToolHost> host;
  std::unique_ptr<tools::JoinedObserver> joined;
  const auto start_over = [&]() -> Observer* {
    host.reset();
    names.restart();
    result.analysis = make_analysis(plan, setup);
    host = std::make_unique<ToolHost>(*result.analysis, host_options);
    if (!plan.beside) return host.get();
    joined = std::make_unique<tools::JoinedObserver>(*host, *plan.beside());
    return joined.get();
  };
  Observer* const observer = start_over();

  const Checkpoints checkpoints(file);
  SessionOptions options;
  options.to = plan.range.to;
  options.check = plan.check;
  options.policy = plan.policy;
  options.path = plan.path;
  options.walks = result.analysis->walks();
  options.cache = plan.cache;
  if (plan.use_checkpoints) {
    if (!from_beginning) options.start = checkpoints.start_for(plan.range, plan.policy.strict);
    // What was compared when checkpoints were taken need not be once more.
    const bool asks_evidence = plan.cache != nullptr || plan.ended != nullptr;
    if (!options.start && plan.check && !asks_evidence) {
      options.start = checkpoints.beginning(plan.policy.strict);
    }
    options.checkpoints = &checkpoints;
  }
  std::optional<CheckpointRun> verified;
  if (!writes_stream(plan)) {
    options.start_over = start_over;
  } else if (plan.use_checkpoints && !options.start && compares_as_usual(options)) {
    verify_first(file, file.container().path(), false, options, verified, console);
  }
  options.plain_first = true;
  options.progress = replay_progress(file, console);
  options.pause = plan.pause;
  ReplaySession session(file, observer, options);
  result.report = session.run();
  host->finish();
  if (windows) windows->finish();
  if (samples) {
    const std::uint64_t end = std::min(result.report.instructions, plan.range.to);
    const std::uint64_t from = std::min(plan.range.from, end);
    result.sample = {plan.sample, samples->share(from, end), end - from};
  }
  result.differs_before = session.differs_before();
  if (plan.ended) plan.ended(session, result.report);
  return result;
}

// ---------------------------------------------------------------------------------------------
// Several processes

namespace {

/// What a process found in its parts, in memory that both processes see.
class Worker {
 public:
  Worker(const RecordingFile& file, const AnalysisPlan& plan, bool begins)
      : results_(::memfd_create("citcat-analysis", 0)), spool_(plan.spool) {
    if (results_ < 0) fail("memory for the results of a part");
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ < 0) fail("a process for a part");
    if (process_ == 0) work(file, plan, begins);
  }
  ~Worker() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    ::close(results_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// AnalysisPlan::spool of its stretch.
  const std::shared_ptr<tools::PartSpool>& spool() const { return spool_; }
  /// Waits for its end; what it wrote.
  std::vector<std::uint8_t> take() {
    while (::waitpid(process_, nullptr, WNOHANG) == 0) {
      check_interrupt();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process_ = 0;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(::lseek(results_, 0, SEEK_END)));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t n =
          ::pread(results_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (n <= 0) fail("the results of a part");
      done += static_cast<std::size_t>(n);
    }
    if (bytes.empty()) throw InternalError("the process of a part ended without a result");
    return bytes;
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw IoError(what + ": " + std::strerror(errno));
  }
  [[noreturn]] void work(const RecordingFile& file, const AnalysisPlan& plan, bool begins);

  int results_;
  std::shared_ptr<tools::PartSpool> spool_;
  pid_t process_ = 0;
};

constexpr std::array kCounts{&ReplayReport::instructions, &ReplayReport::interrupts,
                             &ReplayReport::exceptions,   &ReplayReport::io_reads,
                             &ReplayReport::io_writes,    &ReplayReport::external_writes};

/// Kinds of what a process tells.
enum class Piece : std::uint8_t { part, diverged, failed };

void put_divergence(ByteWriter& out, const Divergence& d) {
  out.u8(static_cast<std::uint8_t>(Piece::diverged));
  out.varint(d.position.instruction);
  out.varint(d.position.iteration);
  out.u64(d.transaction);
  for (const std::string& text : {d.reason, d.expected, d.found}) out.string(text);
}

void Worker::work(const RecordingFile& file, const AnalysisPlan& plan, bool begins) {
  // The handlers of the process that forked look after outputs that are its own.
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) std::signal(s, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ByteWriter out;
  try {
    const AnalysisResult result = run_analysis(file, plan, begins, Console(true));
    if (result.report.divergence) {
      put_divergence(out, *result.report.divergence);
    } else {
      out.u8(static_cast<std::uint8_t>(Piece::part));
      for (const auto count : kCounts) out.varint(result.report.*count);
      out.u8(static_cast<std::uint8_t>(result.report.end));
      result.analysis->save(out);
    }
  } catch (const std::exception& e) {
    out.u8(static_cast<std::uint8_t>(Piece::failed));
    out.u8(static_cast<std::uint8_t>(failure_of(e)));
    out.string(e.what());
  }
  std::span<const std::uint8_t> rest = out.view();
  while (!rest.empty()) {
    const ssize_t n = ::write(results_, rest.data(), rest.size());
    if (n <= 0) std::_Exit(1);
    rest = rest.subspan(static_cast<std::size_t>(n));
  }
  std::_Exit(0);
}

/// Adds what a process found to what is known of the parts before.
void add_part(ByteReader& in, const AnalysisPlan& plan, const Setup& setup,
              AnalysisResult& result) {
  constexpr std::uint64_t kMaxText = 1u << 16;
  const auto piece = static_cast<Piece>(in.u8("kind"));
  switch (piece) {
    case Piece::part: {
      // Checkpoints have the counts of the run before them.
      for (const auto count : kCounts) result.report.*count = in.varint("a count");
      result.report.end = static_cast<ReplayReport::End>(in.u8("end"));
      Setup later = setup;
      later.begins = result.analysis == nullptr;
      auto analysis = make_analysis(plan, later);
      analysis->load(in);
      if (result.analysis) {
        result.analysis->follow(std::move(*analysis));
      } else {
        result.analysis = std::move(analysis);
      }
      break;
    }
    case Piece::diverged: {
      Divergence d;
      d.position.instruction = in.varint("instruction");
      d.position.iteration = static_cast<std::uint32_t>(in.varint("iteration"));
      d.transaction = in.u64("transaction");
      for (std::string* const text : {&d.reason, &d.expected, &d.found}) {
        *text = in.string("text", kMaxText);
      }
      result.report.end = ReplayReport::End::diverged;
      result.report.divergence = d;
      break;
    }
    case Piece::failed: {
      const auto failure = PartFailure(in.u8("kind of failure"));
      throw_of_part(failure, "in a part of the run: " + in.string("text", kMaxText));
    }
  }
}

}  // namespace

AnalysisResult run_parallel_analysis(const RecordingFile& file, const AnalysisPlan& plan,
                                     unsigned processes, const Console& console) {
  auto symbols = std::make_unique<const Symbols>(tools::known_symbols(file, plan.symbols));
  auto names = std::make_unique<tools::GuestNames>(*symbols);
  Setup setup = setup_of(file, plan, *names, true);
  setup.spool = std::make_shared<tools::PartSpool>();
  std::string why = why_serial(plan, setup);
  const Checkpoints checkpoints(file);
  std::vector<ReplayPart> parts;
  if (why.empty()) {
    parts = part_at_checkpoints(checkpoints, plan.range, plan.policy.strict, processes);
    if (parts.size() <= 1) {
      why = "the archive has no checkpoints at which to divide the run (see citcat checkpoint)";
    }
  }
  if (!why.empty()) {
    console.note("one process does it all: " + why);
    return run_analysis(file, plan, true, console);
  }
  // One stretch for each process: what it learned of code serves to its end.
  const std::size_t count = std::min<std::size_t>(processes, parts.size());
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t w = 0; w < count; ++w) {
    AnalysisPlan stretch = plan;
    stretch.spool = std::make_shared<tools::PartSpool>();
    stretch.range.from = parts[w * parts.size() / count].range.from;
    stretch.range.to = parts[(w + 1) * parts.size() / count - 1].range.to;
    workers.push_back(std::make_unique<Worker>(file, stretch, w == 0));
  }
  AnalysisResult result;
  result.symbols = std::move(symbols);
  result.names = std::move(names);
  for (std::size_t w = 0; w < count && !result.report.divergence; ++w) {
    const std::vector<std::uint8_t> bytes = workers[w]->take();
    ByteReader in(bytes, "the results of a part");
    Setup its = setup;
    its.spool = workers[w]->spool();
    add_part(in, plan, its, result);
  }
  return result;
}

}  // namespace citcat
