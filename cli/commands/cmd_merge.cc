// citcat merge: joins the shares of a trace, or of an analysis, that several machines made.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/analysis/analysis_output.h"
#include "cli/analysis/analysis_run.h"
#include "cli/command.h"
#include "cli/commands/isolation_arguments.h"
#include "cli/interrupt.h"
#include "cli/parsing/command_description.h"
#include "cli/shares/shard.h"
#include "cli/staged_output.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/kt/kt_note_reader.h"
#include "formats/kt/trace_sink.h"
#include "tools/host/analysis_part.h"
#include "tools/host/tool_options.h"
#include "tools/plugin/plugin_library.h"

namespace citcat {
namespace {

struct MergeArguments {
  std::vector<std::string> shards;
  std::string output;
  bool json = false, csv = false;
  bool plugins = false;
  IsolationArguments isolation;
};

struct Share {
  std::string path;
  ShardDescription description;
};

/// Throws UsageError unless `shares`, in the order of their numbers, are every share of one trace
/// once; it names those that are missing, by the names that `replay --shard` gives them.
void require_all(const std::vector<Share>& shares) {
  const ShardDescription& first = shares.front().description;
  std::vector<std::string> missing;
  std::uint32_t expected = 1;
  for (const Share& share : shares) {
    const ShardDescription& d = share.description;
    if (!d.same_trace(first)) {
      throw UsageError(
          fmt::format("{} and {} are not shares of one trace", shares.front().path, share.path));
    }
    if (d.shard.number < expected) {
      throw UsageError(fmt::format("{} is share {} of {}, which was named before", share.path,
                                   d.shard.number, d.shard.count));
    }
    for (; expected < d.shard.number; ++expected) {
      missing.push_back(sibling_shard_path(share.path, d.shard, expected));
    }
    ++expected;
  }
  for (; expected <= first.shard.count; ++expected) {
    missing.push_back(sibling_shard_path(shares.front().path, first.shard, expected));
  }
  if (missing.empty()) return;
  constexpr std::size_t kNamed = 8;
  const std::size_t count = missing.size();
  std::string more;
  if (count > kNamed) more = fmt::format(" and {} more", count - kNamed);
  missing.resize(std::min(kNamed, count));
  throw UsageError(fmt::format("{} of {} shares missing: {}{}", count, first.shard.count,
                               fmt::join(missing, ", "), more));
}

/// The shares in their order. Throws UsageError when they are not the whole of one trace.
std::vector<Share> ordered_shares(const std::vector<std::string>& paths) {
  std::vector<Share> shares;
  for (const std::string& path : paths) {
    const std::string description = path + ".json";
    if (std::filesystem::exists(path) && !std::filesystem::exists(description)) {
      throw FormatError(path, 0,
                        "expected a share with its description beside it, found no " + description);
    }
    shares.push_back({path, read_description(description)});
  }
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return a.description.shard.number < b.description.shard.number;
  });
  require_all(shares);
  std::uint64_t next = shares.front().description.whole.from;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const ShardDescription& d = shares[i].description;
    if (d.range.from != next) {
      throw UsageError(fmt::format("{}: expected to begin at instruction {}, found {}",
                                   shares[i].path, next, d.range.from));
    }
    next = d.range.to;
  }
  return shares;
}

/// Hands on what the share notes of its records, which come after `before` bytes. One that is
/// plain KT says where it begins, by its description.
void append_notes(const Share& share, std::uint64_t before, TraceSink& out) {
  KtNoteReader reader(share.path);
  KtNote begin;
  begin.place.instruction = share.description.range.from;
  if (const KtSegment* const segment = reader.seek(0, 0)) begin.place = segment->place;
  begin.at = before;
  if (share.description.bytes != 0) out.note(begin);
  while (const KtNote* const note = reader.next(share.description.bytes)) {
    KtNote moved = *note;
    moved.at += before;
    out.note(moved);
  }
}

void append(const Share& share, std::uint64_t before, ByteSink& out) {
  TraceSink* const trace = as_trace_sink(out);
  if (trace != nullptr && trace->keeps_notes()) append_notes(share, before, *trace);
  HashingSink hashing(out);
  InputStream in(share.path);
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) {
    hashing.write(block);
    check_interrupt();
  }
  const ShardDescription& d = share.description;
  if (hashing.bytes() != d.bytes || hashing.hash() != d.xxh3) {
    throw FormatError(share.path, hashing.bytes(),
                      fmt::format("expected {} bytes of KT with hash {}, found {} with {}", d.bytes,
                                  d.xxh3, hashing.bytes(), hashing.hash()));
  }
}

/// The shares of an analysis in their order. Throws UsageError when they are not the whole of one.
std::vector<tools::AnalysisPart> ordered_parts(const std::vector<std::string>& paths) {
  std::vector<tools::AnalysisPart> parts;
  for (const std::string& path : paths) parts.push_back(tools::read_analysis_part(path));
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  const tools::AnalysisPart& first = parts.front();
  std::uint64_t next = first.whole_from;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const tools::AnalysisPart& p = parts[i];
    if (!p.goes_with(first)) throw UsageError("expected shares of one analysis");
    if (p.number != i + 1) {
      throw UsageError(
          fmt::format("expected share {} of {}, found {}", i + 1, first.count, p.number));
    }
    if (p.from != next) {
      throw UsageError(fmt::format("share {}: expected to begin at instruction {}, found {}",
                                   p.number, next, p.from));
    }
    next = p.to;
  }
  if (parts.size() != first.count) {
    throw UsageError(fmt::format("expected {} shares, found {}", first.count, parts.size()));
  }
  return parts;
}

/// Reading a share must not run whatever code it names: a shared object is loaded only where that
/// was asked for.
void require_leave(const std::vector<std::string>& tools, bool plugins) {
  for (const std::string& tool : tools) {
    const std::string name = tools::ToolOptions::parse(tool).tool();
    if (plugins || !tools::names_plugin(name)) continue;
    throw UsageError("the shares come from a tool in a shared object, " + name +
                     "; --plugins loads it");
  }
}

ExitCode merge_analysis(const MergeArguments& arguments, const Console& console) {
  if (!arguments.output.empty()) {
    throw UsageError(
        "-o is only for shares of a trace; results of an analysis go to the standard output");
  }
  if (arguments.json && arguments.csv) throw UsageError("--json and --csv exclude each other");
  const std::vector<tools::AnalysisPart> parts = ordered_parts(arguments.shards);
  AnalysisPlan plan;
  plan.tools = parts.front().tools;
  plan.where = parts.front().where;
  plan.by = parts.front().by;
  plan.isolate = arguments.isolation.limit();
  require_leave(plan.tools, arguments.plugins);
  tools::Setup setup;
  setup.machine = parts.front().machine;
  setup.from = parts.front().whole_from;
  std::unique_ptr<tools::Analysis> whole;
  for (const tools::AnalysisPart& part : parts) {
    setup.begins = whole == nullptr;
    auto analysis = make_analysis(plan, setup);
    ByteReader in(part.state, fmt::format("share {}", part.number));
    analysis->load(in);
    in.expect_end("the state of a share");
    if (whole) {
      whole->follow(std::move(*analysis));
    } else {
      whole = std::move(analysis);
    }
  }
  ReplayReport report;
  report.instructions = parts.back().to;
  report.end = parts.back().stopped ? ReplayReport::End::stopped : ReplayReport::End::complete;
  print_analysis(*whole, setup.from, report.instructions, report, {},
                 arguments.json  ? AnalysisFormat::json
                 : arguments.csv ? AnalysisFormat::csv
                                 : AnalysisFormat::text,
                 console);
  return told_of_failures(*whole, console) ? ExitCode::system : ExitCode::ok;
}

ExitCode run_merge(const MergeArguments& arguments, const Console& console) {
  if (tools::is_analysis_part(arguments.shards.front())) {
    return merge_analysis(arguments, console);
  }
  const std::vector<Share> shares = ordered_shares(arguments.shards);
  if (arguments.csv) throw UsageError("--csv is only for shares of an analysis");
  if (arguments.output.empty()) throw UsageError("-o is required with shares of a trace");
  require_own_output(arguments.output, arguments.json);
  const std::unique_ptr<ByteSink> out = open_trace_sink(arguments.output);
  std::uint64_t bytes = 0;
  for (const Share& share : shares) {
    append(share, bytes, *out);
    bytes += share.description.bytes;
  }
  out->finish();
  if (arguments.json) {
    console.print_json({{"shards", shares.size()}, {"bytes", bytes}});
  } else if (!is_standard_output(arguments.output)) {
    console.print(fmt::format("{} shares, {} bytes of KT\n", shares.size(), bytes));
  }
  return ExitCode::ok;
}

CommandRun define_merge(const CommandParser& parser) {
  auto arguments = std::make_shared<MergeArguments>();
  parser
      .add_option("SHARD", arguments->shards,
                  "All shares of one trace, or of one analysis, in any order")
      .required();
  parser
      .add_option(
          "-o,--output", arguments->output,
          "File for the whole trace: .kt, .kt.zst (compressed) or .ktz (much smaller); - is stdout")
      .type_name(kFileType);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  parser.add_flag("--csv", arguments->csv, "Print an analysis as tables of comma-separated values");
  parser.add_flag("--plugins", arguments->plugins,
                  "Load the shared objects that the shares of an analysis name as tools");
  arguments->isolation.define(parser);
  return [arguments](const Console& console) { return run_merge(*arguments, console); };
}

}  // namespace

extern const Command kMergeCommand{"merge",
                                   "Join the shares that replay --shard or analyze --shard made",
                                   "citcat merge boot.0001-of-0002.kt boot.0002-of-0002.kt "
                                   "-o boot.kt\n"
                                   "citcat merge mix.0001-of-0002 mix.0002-of-0002 --json",
                                   define_merge};

}  // namespace citcat
