// citcat import: capture files into a recording.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "capture/bus/cache_form.h"
#include "capture/import/import_reader.h"
#include "capture/import/processor_capture.h"
#include "capture/processors/machine_import.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"
#include "cli/commands/default_output.h"
#include "cli/commands/import_questions.h"
#include "cli/commands/recording_symbols.h"
#include "cli/complete/address_completion.h"
#include "cli/file_kind.h"
#include "cli/large_pages.h"
#include "cli/live/live_capture.h"
#include "cli/machine/internal_files.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/option_message.h"
#include "cli/record/side_file.h"
#include "cli/recovered_state.h"
#include "cli/staged_output.h"
#include "events/archive/recording_file.h"
#include "events/machine/cpu_traits.h"
#include "events/names/symbol_file.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

struct ImportArguments {
  std::vector<std::string> captures;
  CaptureArguments capture;
  std::string output, match_channels, initial_state, start, stop, bus, hints;
  std::vector<std::string> internal;
  std::string ignore_counts = "none", counts, complete_addresses = "auto";
  std::vector<std::string> on_chip, symbols;
  std::optional<std::uint32_t> segment;
  int level = ImportOptions{}.level;
  unsigned recovery_time = 300;
  bool json = false, no_provenance = false, recover_state = false;
  bool list_formats = false, explain_channels = false;
};

std::optional<CacheForm> bus_option(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const auto form = parse_cache_form(name);
  if (!form) throw UsageError("--bus: expected none, write-through or write-back, found " + name);
  return form;
}

IgnoreCounts ignore_counts_option(const std::string& name) {
  if (name == "none") return IgnoreCounts::none;
  if (name == "all-but-interrupts") return IgnoreCounts::all_but_interrupts;
  if (name == "all") return IgnoreCounts::all;
  throw UsageError("--ignore-counts: expected none, all-but-interrupts or all, found " + name);
}

std::optional<CountUnit> counts_option(const std::string& name) {
  if (name.empty()) return std::nullopt;
  for (const CountUnit unit : {CountUnit::instructions, CountUnit::branches, CountUnit::blocks}) {
    if (name == count_unit_name(unit)) return unit;
  }
  throw UsageError("--counts: expected instructions, branches or blocks, found " + name);
}

ImportOptions import_options(const ImportArguments& arguments) {
  ImportOptions options;
  options.capture = arguments.capture.options();
  options.capture.cache = bus_option(arguments.bus);
  if (arguments.initial_state == "reset") {
    options.initial_state = state_after_reset(options.capture.cpu);
  } else {
    options.initial_state_path = arguments.initial_state;
  }
  if (!arguments.start.empty())
    options.start = for_option("--start", [&] { return parse_where(arguments.start); });
  if (!arguments.stop.empty())
    options.stop = for_option("--stop", [&] { return parse_where(arguments.stop); });
  options.ignore_counts = ignore_counts_option(arguments.ignore_counts);
  options.counts = counts_option(arguments.counts);
  for (const std::string& text : arguments.on_chip) {
    options.on_chip.push_back(for_option("--on-chip", [&] { return parse_on_chip_marker(text); }));
  }
  options.segment = arguments.segment;
  options.provenance = !arguments.no_provenance;
  options.level = arguments.level;
  return options;
}

nlohmann::ordered_json result_json(const ImportResult& result) {
  nlohmann::ordered_json json;
  json["format"] = result.format;
  json["cpu"] = cpu_model_name(result.cpu);
  json["transactions"] = result.transactions;
  json["instructions"] = nullptr;
  if (result.instructions) json["instructions"] = *result.instructions;
  json["image_bytes"] = result.image_bytes;
  json["interrupts"] = result.interrupts;
  json["io_reads"] = result.io_reads;
  json["external_writes"] = result.external_writes;
  json["recordings"] = result.recordings;
  json["end"] = ending_name(result.ending);
  json["interrupted"] = is_interrupted(result.ending);
  json["warnings"] = result.warnings;
  return json;
}

void print_json(const ImportResult& result, const std::optional<RecoveredState>& recovered,
                const Console& console) {
  nlohmann::ordered_json json = result_json(result);
  if (recovered) json["recovered"] = recovered_json(*recovered);
  console.print_json(json);
}

void print_text(const ImportResult& result, const std::string& output, const Console& console) {
  console.print_line(fmt::format("{}: {} capture, processor {}, {} transactions", output,
                                 result.format, cpu_model_name(result.cpu), result.transactions));
  if (result.recordings > 1) {
    console.print_line(fmt::format("  recordings       {}", result.recordings));
  }
  if (result.instructions) {
    console.print_line(fmt::format("  instructions     {}", *result.instructions));
  }
  console.print(
      fmt::format("  image            {} bytes\n  interrupts       {}\n  I/O reads        {}\n"
                  "  external writes  {}\n",
                  result.image_bytes, result.interrupts, result.io_reads, result.external_writes));
}

/// The questions that are answered instead of importing.
bool answer_questions(const ImportArguments& arguments, const ImportOptions& options,
                      const Console& console) {
  if (arguments.list_formats) {
    print_formats(arguments.json, console);
    return true;
  }
  if (arguments.captures.empty())
    throw UsageError("CAPTURE is required (see citcat import --help)");
  if (arguments.explain_channels) {
    print_channels(arguments.captures, options.capture, arguments.json, console);
    return true;
  }
  if (!arguments.match_channels.empty()) {
    propose_channels(arguments.captures, options.capture, arguments.match_channels, arguments.json,
                     console);
    return true;
  }
  return false;
}

/// The file of values that cross no bus: the one that is named, or that lies beside the capture.
std::string side_file_for(const ImportArguments& arguments, const std::string& given,
                          const Console& console) {
  if (given == "none") return "";
  if (!given.empty() || arguments.captures.size() != 1) return given;
  const auto found = find_side_file(arguments.captures[0]);
  if (!found) return "";
  console.note("values that cross no bus are taken from " + *found +
               ", which lies beside the capture");
  return *found;
}

/// A monitor in an emulator knows values that cross no bus. Without them a program that asks for
/// one cannot be replayed any further.
void warn_of_missing_values(const ImportOptions& options, ImportResult& result) {
  const bool asks =
      is_known(result.cpu) && cpu_traits(result.cpu).instructions >= InstructionSet::pentium;
  if (!options.capture.internal_path.empty() || result.format != "machine" || !asks) return;
  result.warnings.push_back(
      "no values that cross no bus (RDTSC, RDMSR, CPUID): a replay ends at the first instruction "
      "that asks for one; name their file with --internal, or say --internal none");
}

/// Adds the hints to the recording of the archive that they are for.
void add_hints(const std::string& hints_path, const std::string& archive) {
  const HintFile hints = load_hints(hints_path);
  const std::size_t count = RecordingFile::open(archive).recordings();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = archive + "@" + std::to_string(i);
    RecordingFile file = RecordingFile::open(name);
    const bool meant = hints.recording.empty() || hints.recording == file.identity(false).hex();
    if (!meant && i + 1 < count) continue;
    // Refuses what does not fit, before anything is added.
    file.apply(hints, hints_path);
    RecordingAppender appender(name);
    appender.add_hints(hints);
    appender.finish();
    return;
  }
}

/// What is asked for of a capture of several processors must be something that all of them can
/// have.
void require_for_each(const ImportArguments& arguments, const InternalFiles& internal) {
  const auto refuse = [](bool given, const char* option) {
    if (given) {
      throw UsageError(std::string(option) +
                       ": not for a capture of several processors together; --format machine-smp:P "
                       "imports one of them");
    }
  };
  refuse(!arguments.start.empty(), "--start");
  refuse(!arguments.stop.empty(), "--stop");
  refuse(arguments.segment.has_value(), "--segment");
  refuse(!arguments.initial_state.empty(), "--initial-state");
  refuse(arguments.recover_state, "--recover-state");
  refuse(!arguments.hints.empty(), "--hints");
  const auto refuse_uncounted = [](bool given, const char* option) {
    if (given) {
      throw UsageError(
          std::string(option) +
          ": the counts of instructions are needed to put several processors in order");
    }
  };
  refuse_uncounted(arguments.ignore_counts != "none", "--ignore-counts");
  refuse_uncounted(!arguments.counts.empty() && arguments.counts != "instructions", "--counts");
  if (internal.single.empty() || internal.single == "none") return;
  throw UsageError(
      "--internal " + internal.single +
      ": the capture shows several processors, and each has a file of its own: --internal P=FILE");
}

/// Without its values that cross no bus a processor cannot be replayed beyond the first of them.
void warn_of_missing_files(const InternalFiles& internal, const MachineImportResult& result,
                           const Console& console) {
  if (internal.single == "none") return;
  std::string without;
  for (std::size_t p = 0; p < result.processors.size(); ++p) {
    const bool named = p < internal.of_processors.size() && !internal.of_processors[p].empty();
    const CpuModel cpu = result.processors[p].cpu;
    const bool asks = is_known(cpu) && cpu_traits(cpu).instructions >= InstructionSet::pentium;
    if (!named && asks) without += (without.empty() ? "" : ", ") + std::to_string(p);
  }
  if (without.empty()) return;
  console.warn(
      "no values that cross no bus (RDTSC, RDMSR, CPUID, registers of the local APIC) of " +
      std::string("processor ") + without +
      ": a replay ends at the first instruction that asks for one; name their file with " +
      "--internal P=FILE, or say --internal P=none");
}

/// A capture of several processors: all of them.
ExitCode import_processors(const ImportArguments& arguments, ImportOptions options,
                           const InternalFiles& internal, const Console& console) {
  require_for_each(arguments, internal);
  const std::vector<SymbolModule> symbols = load_symbols(arguments.symbols);
  StagedOutput output(arguments.output);
  use_large_pages();
  Progress progress = console.progress("importing", "transactions");
  options.progress = [&progress](std::uint64_t done) { progress.update(done); };
  const MachineImportResult result =
      import_machine(arguments.captures, {std::move(options), internal.paths()}, output.path());
  for (const std::string& text : result.all.warnings) console.warn(text);
  warn_of_missing_files(internal, result, console);
  if (!symbols.empty()) add_symbols(symbols, output.path(), console);
  output.finish();
  if (arguments.json) {
    nlohmann::ordered_json json = result_json(result.all);
    for (const ImportResult& each : result.processors)
      json["processors"].push_back(result_json(each));
    console.print_json(json);
  } else if (!is_standard_output(arguments.output)) {
    print_text(result.all, arguments.output, console);
    for (std::size_t i = 0; i < result.processors.size(); ++i) {
      const ImportResult& each = result.processors[i];
      console.print_line(fmt::format("  processor {:<6} {} instructions, {} transactions", i,
                                     each.instructions.value_or(0), each.transactions));
    }
  }
  return ExitCode::ok;
}

ExitCode run_import(ImportArguments arguments, const Console& console) {
  const LiveCaptures live(arguments.captures, console);
  ImportOptions options = import_options(arguments);
  if (answer_questions(arguments, options, console)) return ExitCode::ok;
  if (arguments.output.empty()) {
    if (live.any()) throw UsageError("--output is required with a capture that is made now");
    const std::string& capture = arguments.captures.front();
    std::error_code error;
    if (std::filesystem::is_regular_file(capture, error) &&
        find_file_kind(capture).kind == FileKind::recording)
      throw UsageError(capture + " is a recording already");
    arguments.output = default_output(capture, ".citcat");
  }
  require_own_output(arguments.output, arguments.json);
  const InternalFiles internal = parse_internal_files(arguments.internal);
  if (shows_processors(arguments.captures, options.capture))
    return import_processors(arguments, std::move(options), internal, console);
  if (!internal.of_processors.empty()) {
    throw UsageError("--internal P=FILE: the capture shows one processor; say --internal FILE");
  }
  // Read first: what is wrong with them is known before hours of reading a capture.
  const std::vector<SymbolModule> symbols = load_symbols(arguments.symbols);
  options.capture.internal_path = side_file_for(arguments, internal.single, console);
  StagedOutput output(arguments.output);
  use_large_pages();
  Progress progress = console.progress("importing", "transactions");
  options.progress = [&progress](std::uint64_t done) { progress.update(done); };
  const Completion completion = parse_completion(arguments.complete_addresses);
  std::optional<RecoveredState> recovered;
  if (arguments.recover_state) {
    recovered = recover_state_of(arguments.captures, options, output.beside("traffic"),
                                 arguments.recovery_time, console);
    options.initial_state = recovered->state;
  }
  const std::unique_ptr<CaptureReader> reader =
      with_whole_addresses(open_capture(arguments.captures, options.capture), options, completion);
  ImportResult result = import_reader(*reader, arguments.captures.front(),
                                      arguments.captures.size(), options, output.path());
  if (internal.single != "none") warn_of_missing_values(options, result);
  for (const std::string& text : result.warnings) console.warn(text);
  if (result.transactions == 0)
    console.warn("the capture shows no transaction; citcat lint looks for the reason");
  if (recovered) add_recovered_memory(*recovered, output.path());
  if (!arguments.hints.empty()) add_hints(arguments.hints, output.path());
  if (!symbols.empty()) add_symbols(symbols, output.path(), console);
  output.finish();
  if (arguments.json) {
    print_json(result, recovered, console);
  } else if (!is_standard_output(arguments.output)) {
    print_text(result, arguments.output, console);
    if (recovered) {
      console.print("  registers\n");
      for (const std::string& line : recovered_lines(*recovered)) console.print_line("  " + line);
    }
  }
  return ExitCode::ok;
}

CommandRun define_import(const CommandParser& parser) {
  auto arguments = std::make_shared<ImportArguments>();
  parser.add_option("CAPTURE", arguments->captures,
                    "Capture files, compressed or not (.gz .bz2 .xz .zst); or "
                    "'sigrok:DRIVER[:conn=...] OPTIONS' to capture now with sigrok-cli");
  parser
      .add_option("-o,--output", arguments->output,
                  "Recording to write, - is the standard output (default: the name of the capture "
                  "with .citcat, here)")
      .type_name(kFileType);
  parser.add_flag("--list-formats", arguments->list_formats,
                  "Only list the capture formats, and which of them `convert` writes");
  parser.add_flag(
      "--explain-channels", arguments->explain_channels,
      "Only print which channel is which pin, which pins are missing, and what that costs");
  parser
      .add_option("--match-channels", arguments->match_channels,
                  "Only find a channel map from how the channels change, and write it to this "
                  "file; for processors up to the 386SX")
      .type_name(kFileType);
  arguments->capture.define(parser);
  parser
      .add_option("--initial-state", arguments->initial_state,
                  "Processor state at the start, if the capture holds none; or the word reset")
      .type_name(kFileType);
  parser.add_flag("--recover-state", arguments->recover_state,
                  "Work out the state at --start interrupt:N from the bus");
  parser
      .add_option("--recovery-time", arguments->recovery_time,
                  "Seconds after which --recover-state gives up; 0: never")
      .show_default();
  parser.add_option(
      "--start", arguments->start,
      "Where the recording begins: interrupt:N, transaction:N, sample:N, instruction:N or clock:N");
  parser.add_option("--stop", arguments->stop, "Where the recording ends, as --start");
  parser.add_option(
      "--segment", arguments->segment,
      "Only this segment of the capture, counted from 0 (default: every segment that has a state)");
  parser.add_flag("--no-provenance", arguments->no_provenance,
                  "Do not keep the origin of the capture, so that every form of the capture gives "
                  "the same bytes");
  parser
      .add_option("--internal", arguments->internal,
                  "Values that cross no bus, such as RDTSC's (default: the .side.csv beside the "
                  "capture; none: leave them out); for several processors P=FILE each")
      .type_name(kFileType)
      .repeated();
  parser
      .add_option("--hints", arguments->hints,
                  "Corrections to keep in the recording, written by `explain`")
      .type_name(kFileType);
  parser
      .add_option("--symbols", arguments->symbols,
                  "Names to keep in the recording, from System.map, kallsyms or ELF: "
                  "FILE[@BASE][:PROCESS]; may be repeated")
      .type_name(kFileType)
      .repeated();
  parser
      .add_option("--complete-addresses", arguments->complete_addresses,
                  "Work out address lines that were not captured, by running the processor from "
                  "its initial state: auto (if lines below the highest are missing), always or "
                  "never")
      .type_name(type_of({"auto", "always", "never"}))
      .show_default();
  parser
      .add_option("--bus", arguments->bus,
                  "Cache of the processor: none, write-through or write-back")
      .type_name(type_of({"none", "write-through", "write-back"}));
  parser
      .add_option("--ignore-counts", arguments->ignore_counts,
                  "Instruction counts of the capture to ignore: none, all-but-interrupts or all")
      .type_name(type_of({"none", "all-but-interrupts", "all"}));
  parser
      .add_option("--counts", arguments->counts,
                  "What the capture counts: instructions, taken branches or blocks")
      .type_name(type_of({"instructions", "branches", "blocks"}));
  parser
      .add_option("--on-chip", arguments->on_chip,
                  "How the bus shows an interrupt that has no acknowledge cycle: "
                  "VECTOR=io-write:PORT[:VALUE], mem-write:ADDR[:VALUE] or "
                  "mem-read:ADDR[:VALUE], such as 30=io-write:20:60; may be repeated")
      .repeated();
  parser
      .add_option("--level", arguments->level,
                  "How hard to compress the evidence, from quickest to smallest")
      .in_range(RecordingFileOptions::kFastest, RecordingFileOptions::kSmallest)
      .show_default();
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_import(*arguments, console); };
}

}  // namespace

extern const Command kImportCommand{
    "import", "Make a recording from captures",
    "citcat import boot.sr -o boot.citcat --initial-state state.json --start interrupt:0",
    define_import};

}  // namespace citcat
