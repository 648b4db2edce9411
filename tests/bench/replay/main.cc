// How fast a replay is: guests and recordings, each as plain replay, to KT in several ways,
// checked, with checkpoints and from one of them, and told to every tool and exporter, beside the
// engine alone and the usual tracer in the same run.
//
//   bench_replay [--rounds N] [--json FILE] [--only WHAT] [RECORDING...]
//
// Times are CPU seconds of one core, the least of all rounds: machines are shared, and ratios of
// one run are what counts.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/engine_alone.h"
#include "bench/replay/guest.h"
#include "bench/replay/tool_runs.h"
#include "events/archive/recording_file.h"
#include "formats/kt/kt.h"
#include "replay/session/checkpoints.h"
#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "replay/verify/verifier.h"

namespace citcat::bench {
namespace {

struct Row {
  std::string workload, what;
  std::uint64_t instructions = 0;
  double seconds = 0;
  double millions() const { return static_cast<double>(instructions) / seconds / 1e6; }
};

double cpu_seconds(const std::function<void()>& body) {
  const std::clock_t start = std::clock();
  body();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

class Bench {
 public:
  /// Replays of this kind alone, for a profiler.
  void only(const std::string& what) { only_ = what; }
  bool all() const { return only_.empty(); }

  void guest(const std::string& name) {
    const Guest g = load_guest(name);
    const Recording recording = guest_recording(g);
    replays(name, recording, nullptr);
    if (!all()) return;
    const auto replayed =
        std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.workload == name; });
    const std::uint64_t n = replayed->instructions;
    add({name, kEngine, n, run_alone(g, Alone::nothing)});
    add({name, kTracer, n, run_alone(g, Alone::tracer)});
  }

  void recording(const std::string& path) {
    const RecordingFile file = RecordingFile::open(path);
    const std::string name = path.substr(path.find_last_of('/') + 1);
    replays(name, file.recording(), &file);
    if (all()) checkpoints(name, path);
    told(name, file);
  }

  /// Memory and time of a long run, by windows.
  void flatness(const std::string& name) {
    const Guest g = load_guest(name);
    const Recording recording = guest_recording(g);
    NullSink nowhere;
    KtWriter writer(nowhere);
    KtSink kt(writer, {});
    Replayer replayer(recording, &kt, {});
    std::cout << "\nKT of " << name << ", by 10 million instructions: seconds, peak MiB\n\n";
    constexpr std::uint64_t kWindow = 10'000'000;
    for (std::uint64_t to = kWindow; to <= 12 * kWindow; to += kWindow) {
      std::uint64_t done = 0;
      const double seconds = cpu_seconds([&] { done = replayer.run_to(to).instructions; });
      rusage usage{};
      getrusage(RUSAGE_SELF, &usage);
      std::cout << fmt::format("  {:>4} M  {:.3f}  {:.0f}\n", done / 1'000'000, seconds,
                               static_cast<double>(usage.ru_maxrss) / 1024);
      if (done < to) break;
    }
  }

  /// Tools and exporters: what they cost beside plain replay and KT of the same recording.
  void print_told() const {
    std::cout
        << "\n| workload | what | M instr/s | of plain replay | of KT |\n|---|---|---|---|---|\n";
    for (const Row& r : told_) {
      std::cout << fmt::format("| {} | {} | {:.1f} | {} | {} |\n", r.workload, r.what, r.millions(),
                               ratio(r, kPlain), ratio(r, kKt));
    }
  }
  /// Recordings have no engine alone and no usual tracer: their ratios are to those of the first
  /// guest.
  void print() const {
    std::cout
        << "| workload | what | M instructions | s | M instr/s | of the engine alone | of the "
           "usual tracer |\n|---|---|---|---|---|---|---|\n";
    for (const Row& r : rows_) {
      std::cout << fmt::format("| {} | {} | {:.1f} | {:.3f} | {:.1f} | {} | {} |\n", r.workload,
                               r.what, static_cast<double>(r.instructions) / 1e6, r.seconds,
                               r.millions(), ratio(r, kEngine), ratio(r, kTracer));
    }
  }
  void write_json(const std::string& path) const {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    const auto add = [&](const Row& r) -> nlohmann::ordered_json& {
      all.push_back({{"workload", r.workload},
                     {"what", r.what},
                     {"instructions", r.instructions},
                     {"seconds", r.seconds},
                     {"mips", r.millions()}});
      return all.back();
    };
    for (const Row& r : rows_) {
      auto& row = add(r);
      row["of_engine_alone"] = ratio(r, kEngine);
      row["of_usual_tracer"] = ratio(r, kTracer);
    }
    for (const Row& r : told_) {
      auto& row = add(r);
      row["of_plain_replay"] = ratio(r, kPlain);
      row["of_kt"] = ratio(r, kKt);
    }
    std::ofstream(path) << all.dump(1) << '\n';
  }

 private:
  static constexpr const char* kEngine = "engine alone";
  static constexpr const char* kTracer = "usual tracer";
  static constexpr const char* kPlain = "plain replay";
  static constexpr const char* kKt = "KT";

  /// Speed of `r`, as a multiple of what `other` did with the same workload, or else the first that
  /// did `other`.
  std::string ratio(const Row& r, const char* other) const {
    const Row* reference = nullptr;
    for (const Row& candidate : rows_) {
      if (candidate.what != other) continue;
      if (reference == nullptr || candidate.workload == r.workload) reference = &candidate;
    }
    if (reference == nullptr) return "";
    return fmt::format("{:.2f}", r.millions() / reference->millions());
  }

  void replays(const std::string& name, const Recording& recording, const RecordingFile* file) {
    ReplayOptions options;
    if (file != nullptr) options.evidence = [file] { return file->evidence(); };
    run(name, kPlain, recording, nullptr, options);
    NullSink nowhere;
    KtWriter writer(nowhere);
    KtSink kt(writer, {});
    run(name, kKt, recording, &kt, options);
    const auto plain_file = open_trace_sink("bench.kt");
    KtWriter file_writer(*plain_file);
    KtSink file_kt(file_writer, {});
    run(name, "KT to a file", recording, &file_kt, options);
    const auto compressed = open_trace_sink("bench.kt.zst");
    KtWriter compressed_writer(*compressed);
    KtSink compressed_kt(compressed_writer, {});
    run(name, "KT to .zst", recording, &compressed_kt, options);
    if (file != nullptr) {
      checked(name, "verify", *file, nullptr, options);
      checked(name, "KT, checked", *file, &kt, options);
    }
    options.path = ExecutionPath::instructions;
    run(name, "KT, each instruction reported", recording, &kt, options);
    if (file != nullptr) {
      checked(name, "KT, checked, each instruction reported", *file, &kt, options);
    }
  }
  void checked(const std::string& name, const std::string& what, const RecordingFile& file,
               Observer* trace, const ReplayOptions& options) {
    if (!only_.empty() && what != only_) return;
    VerifierOptions verifying;
    verifying.plain = options.path == ExecutionPath::blocks;
    Verifier verifier(file.recording(), file.evidence(), verifying);
    Listeners both;
    both.add(verifier);
    if (trace != nullptr) both.add(*trace);
    Replayer replayer(file.recording(), both, options);
    time(name, what, replayer);
  }
  void told(const std::string& name, const RecordingFile& file) {
    const ToolRun run(file);
    std::vector<std::string> tools = all_tools(), exporters = all_exporters();
    tools.insert(tools.end(), exporters.begin(), exporters.end());
    for (const std::string& tool : tools) {
      if (!only_.empty() && tool != only_) continue;
      std::uint64_t instructions = 0;
      const double seconds = cpu_seconds([&] { instructions = run.run(tool); });
      add(told_, {name, tool, instructions, seconds});
    }
  }
  /// Takes a checkpoint every 2^20 instructions into a copy of the archive, and from there goes to
  /// ten instructions in the middle of the run.
  void checkpoints(const std::string& name, const std::string& path) {
    const std::string copy = "bench.citcat";
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    std::uint64_t end = 0;
    {
      const RecordingFile file = RecordingFile::open(copy);
      Replayer replayer(file.recording(), nullptr, {});
      CheckpointTaker taker(file.recording(), {});
      const double seconds = cpu_seconds([&] {
        while ((end = replayer.run_to(taker.next()).instructions) == taker.next()) {
          taker.take(replayer);
        }
      });
      if (taker.count() == 0) return;
      taker.append_to(copy, replayer.machine().position(), {});
      add({name, "plain replay with checkpoints", end, seconds});
    }
    const double seconds = cpu_seconds([&] {
      const RecordingFile file = RecordingFile::open(copy);
      NullSink nowhere;
      KtWriter writer(nowhere);
      KtSink kt(writer, {.from = end / 2, .to = end / 2 + 10});
      Replayer replayer(file.recording(), &kt, {});
      const Checkpoints all(file);
      const auto start = all.start_for({end / 2, end / 2 + 10});
      if (start) all.restore(*start, replayer);
      replayer.run_to(end / 2 + 10);
    });
    add({name, "ten instructions in the middle, from a checkpoint", 10, seconds});
  }
  void run(const std::string& name, const std::string& what, const Recording& recording,
           Observer* sink, const ReplayOptions& options) {
    if (!only_.empty() && what != only_) return;
    Replayer replayer(recording, sink, options);
    time(name, what, replayer);
  }
  void time(const std::string& name, const std::string& what, Replayer& replayer) {
    ReplayReport report;
    const double seconds = cpu_seconds([&] { report = replayer.run(); });
    if (report.divergence) std::cerr << name << ": " << report.divergence->reason << '\n';
    add({name, what, report.instructions, seconds});
  }
  /// What was done in another round, too, is one row: the quicker.
  void add(Row row) { add(rows_, std::move(row)); }
  static void add(std::vector<Row>& rows, Row row) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
      return r.workload == row.workload && r.what == row.what;
    });
    if (same == rows.end()) {
      rows.push_back(std::move(row));
    } else {
      same->seconds = std::min(same->seconds, row.seconds);
    }
  }

  std::string only_;
  std::vector<Row> rows_, told_;
};

}  // namespace
}  // namespace citcat::bench

int main(int argc, char** argv) {
  CLI::App app("How fast replays are, beside the engine alone and the usual tracer");
  unsigned rounds = 1;
  std::string json, only;
  std::vector<std::string> recordings;
  app.add_option("--rounds", rounds, "Times that everything is done; the quickest counts")
      ->check(CLI::PositiveNumber);
  app.add_option("--json", json, "File for the table as JSON");
  app.add_option("--only", only, "Nothing but replays of this kind, for a profiler");
  app.add_option("RECORDING", recordings, "Recordings beside the two guests");
  CLI11_PARSE(app, argc, argv);
  citcat::bench::Bench bench;
  bench.only(only);
  for (unsigned i = 0; i < rounds; ++i) {
    bench.guest("compute");
    bench.guest("memory");
    for (const std::string& path : recordings) bench.recording(path);
  }
  bench.print();
  bench.print_told();
  if (bench.all()) bench.flatness("compute");
  if (!json.empty()) bench.write_json(json);
}
