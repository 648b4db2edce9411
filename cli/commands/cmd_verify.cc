// citcat verify: whether the replay is the run that was captured.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/accounting_report.h"
#include "cli/cache_report.h"
#include "cli/command.h"
#include "cli/comparison_arguments.h"
#include "cli/digest_verify.h"
#include "cli/divergence_report.h"
#include "cli/engine_argument.h"
#include "cli/machine/machine_verdict.h"
#include "cli/machine/processes.h"
#include "cli/machine/processor_argument.h"
#include "cli/machine/verify_parts.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/replay_options.h"
#include "cli/placed_recording.h"
#include "cli/replay_progress.h"
#include "cli/report/verdict.h"
#include "events/machine/memory_file.h"
#include "events/names/code_file.h"
#include "formats/io/error.h"
#include "replay/processors/unshown_stores.h"
#include "replay/run/replay_session.h"
#include "replay/verify/cache_check.h"
#include "replay/verify/code/code_check.h"
#include "replay/verify/verifier.h"

namespace citcat {
namespace {

struct VerifyArguments {
  std::string recording, memory, cache_model, hints;
  std::vector<std::string> code;
  bool json = false, cache = false, exact_cache = false, account = false;
  bool wants_cache() const { return cache || exact_cache || !cache_model.empty(); }
  std::optional<std::uint64_t> line;  ///< that the account is asked of
  ComparisonPolicy comparison;
  ExecutionPath path = ExecutionPath::blocks;
  ProcessorArgument processor;
  unsigned jobs = 1;
};

void add_to(CheckCount& all, const CheckCount& one) {
  all.checked += one.checked;
  all.equal += one.equal;
}

/// Adds the comparison of one recording's code to that of all. An address that several recordings
/// executed counts in each.
void add_to(std::optional<CodeComparison>& all, const std::optional<CodeComparison>& one) {
  if (!all || !one) return;
  all->bytes += one->bytes;
  all->equal += one->equal;
  all->changed += one->changed;
  all->doubts.insert(all->doubts.end(), one->doubts.begin(), one->doubts.end());
}

/// The verdict over several recordings; its divergence is the first one's.
Verdict sum(const std::vector<Verdict>& verdicts) {
  Verdict all = verdicts.front();
  // Each recording has its own: they have different starts.
  all.accounting.reset();
  for (std::size_t i = 1; i < verdicts.size(); ++i) {
    const Verdict& v = verdicts[i];
    all.report.instructions += v.report.instructions;
    all.report.interrupts += v.report.interrupts;
    all.report.exceptions += v.report.exceptions;
    all.report.external_writes += v.report.external_writes;
    if (!all.report.divergence) all.report.divergence = v.report.divergence;
    all.captured_memory |= v.captured_memory;
    add_to(all.totals.writes, v.totals.writes);
    add_to(all.totals.write_backs, v.totals.write_backs);
    add_to(all.totals.io_reads, v.totals.io_reads);
    add_to(all.totals.io_writes, v.totals.io_writes);
    add_to(all.totals.specials, v.totals.specials);
    add_to(all.totals.instructions, v.totals.instructions);
    all.totals.reads += v.totals.reads;
    if (all.totals.single_bit_changes == 0) {
      all.totals.first_single_bit_change = v.totals.first_single_bit_change;
    }
    all.totals.single_bit_changes += v.totals.single_bit_changes;
    all.totals.adopted += v.totals.adopted;
    all.totals.evidence_bytes += v.totals.evidence_bytes;
    all.memory.bytes += v.memory.bytes;
    all.memory.different += v.memory.different;
    all.memory.adopted += v.memory.adopted;
    all.memory.external_unseen += v.memory.external_unseen;
    all.memory.device += v.memory.device;
    all.hardware_stream |= v.hardware_stream;
    all.match &= v.match;
    all.shut_down |= v.shut_down;
    all.shows_shutdown |= v.shows_shutdown;
    all.placements.insert(all.placements.end(), v.placements.begin(), v.placements.end());
    add_to(all.cache, v.cache);
    if (&v != &verdicts.front()) add_to(all.code, v.code);
    all.model_specific_results += v.model_specific_results;
    if (all.first_model_specific.empty()) all.first_model_specific = v.first_model_specific;
  }
  return all;
}

std::string code_text(const CodeComparison& code) {
  std::string text = fmt::format("  {:<18} {} of {} bytes as in the files\n", "executed code",
                                 code.equal, code.bytes);
  if (code.doubts.empty()) return text;
  text += fmt::format(
      "  {:<18} {} bytes of code differ in one bit from a file, and nothing around them does:\n"
      "  {:<18} a bit of a code read that was captured wrongly\n",
      "doubtful", code.doubts.size(), "");
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(kShown, code.doubts.size()); ++i) {
    const CodeDoubt& d = code.doubts[i];
    text += fmt::format("  {:<18} {:08x}: {:02x}, {:02x} at {}:{}\n", "", d.linear.value,
                        d.executed, d.known, d.file, d.offset);
  }
  return text;
}

std::string count_text(const char* what, const CheckCount& count) {
  if (count.checked == 0) return "";
  return fmt::format("  {:<18} {} of {} equal\n", what, count.equal, count.checked);
}

/// How the run ended, where its interrupts were found to be, and what a model of the cache says.
std::string circumstances_text(const Verdict& v) {
  std::string text;
  if (v.shut_down) {
    text += fmt::format("  {:<18} in a shutdown, which the bus {}\n", "ends",
                        v.shows_shutdown ? "shows" : "does not show");
  }
  if (v.report.cut) {
    text += fmt::format("  {:<18} within the capture's last instruction, {}: {}\n", "ends",
                        place_text(*v.report.cut), v.report.cut->reason);
  }
  if (!v.placements.empty())
    text += fmt::format("  {:<18} {}\n", "interrupts placed", placements_text(v.placements));
  if (v.cache) {
    for (const std::string& line : cache_lines(*v.cache)) text += line + "\n";
  }
  return text;
}

/// What the verdict cannot be sure of.
std::string doubts_text(const Verdict& v) {
  std::string text;
  if (v.model_specific_results != 0) {
    text += fmt::format(
        "  {:<18} {} results that processors compute differently (x87 transcendentals, RCPPS,\n"
        "  {:<18} RSQRTPS): right in registers and caches only as far as the bus showed them\n"
        "  {:<18} the first: {}\n",
        "uncertain", v.model_specific_results, "", "", v.first_model_specific);
  }
  if (v.totals.single_bit_changes != 0) {
    text += fmt::format(
        "  {:<18} {} changes of one bit by another bus master, the first shown by transaction {}:\n"
        "  {:<18} a device, or a bit of a read that was captured wrongly\n",
        "suspect", v.totals.single_bit_changes, v.totals.first_single_bit_change, "");
  }
  return v.code ? text + code_text(*v.code) : text;
}

std::string account_text(const Verdict& v) {
  std::string text;
  if (!v.accounting) return text;
  for (const std::string& line : accounting_lines(*v.accounting)) text += line + "\n";
  return text;
}

void print_text(const Verdict& v, const Console& console) {
  std::string adopted;
  const std::uint64_t adoptions = v.totals.adopted + v.memory.adopted;
  if (adoptions != 0) adopted = fmt::format(" with {} adoptions", adoptions);
  if (v.model_specific_results != 0) {
    adopted += fmt::format(" {} {} uncertain results", adopted.empty() ? "with" : "and",
                           v.model_specific_results);
  }
  console.print_verdict(v.match, v.match ? "match" : "diverged",
                        fmt::format("{}: {} instructions", adopted, v.report.instructions));
  console.print(count_text("instruction stream", v.totals.instructions));
  console.print(count_text("memory writes", v.totals.writes));
  console.print(count_text("lines written back", v.totals.write_backs));
  if (v.totals.reads != 0) {
    console.print(fmt::format("  {:<18} {} compared\n", "reads and fills", v.totals.reads));
  }
  console.print(count_text("port reads", v.totals.io_reads));
  console.print(count_text("port writes", v.totals.io_writes));
  console.print(count_text("special cycles", v.totals.specials));
  console.print(circumstances_text(v));
  if (v.memory.bytes != 0) {
    console.print(fmt::format("  {:<18} {} bytes, {} different\n", "final memory", v.memory.bytes,
                              v.memory.different));
  } else {
    console.print(fmt::format("  {:<18} not compared: {}\n", "final memory",
                              v.captured_memory
                                  ? "none of the captured bytes is known to the replay"
                                  : "none was captured (--memory), and the bus does "
                                    "not show what it holds"));
  }
  console.print(doubts_text(v));
  if (v.memory.adopted != 0) {
    console.print(fmt::format("  {:<18} {} bytes of such results taken from the captured memory\n",
                              "", v.memory.adopted));
  }
  if (v.memory.external_unseen != 0) {
    console.print(
        fmt::format("  {:<18} {} bytes changed by another bus master after the "
                    "processor's last access\n",
                    "", v.memory.external_unseen));
  }
  if (v.memory.device != 0) {
    console.print(
        fmt::format("  {:<18} {} bytes written to devices, not compared\n", "", v.memory.device));
  }
  console.print(account_text(v));
  if (v.report.divergence) {
    for (const std::string& line : divergence_lines(*v.report.divergence, v.clock_hz)) {
      console.print(line + "\n");
    }
  }
}

Verdict add_account(Verdict verdict, const RecordingFile& file, const VerifyArguments& arguments) {
  if (!arguments.account) return verdict;
  verdict.accounting = account(file, verdict.totals, verdict.report.instructions, arguments.line);
  if (arguments.line && !verdict.accounting->line) {
    throw UsageError(fmt::format("--at {}: the replay has {} instructions", *arguments.line,
                                 verdict.report.instructions));
  }
  return verdict;
}

/// Nullopt where one process has to compare the whole.
std::optional<Verdict> verify_with_jobs(const PlacedRecording& placed, const MemoryImage* captured,
                                        const VerifyArguments& arguments) {
  const bool by_parts = arguments.jobs > 1 && arguments.path == ExecutionPath::blocks &&
                        arguments.hints.empty() && arguments.code.empty() &&
                        !arguments.wants_cache();
  if (!by_parts) return std::nullopt;
  return verify_in_parts(placed, captured, arguments.comparison, arguments.jobs);
}

/// Called after a replay has ended, with the replay at its end.
using AtEnd = std::function<void(const ReplaySession& run)>;

Verdict verify(const PlacedRecording& placed, const MemoryImage* captured,
               const VerifyArguments& arguments, const Console& console, const AtEnd& at_end = {}) {
  const RecordingFile& file = placed.file;
  if (std::optional<Verdict> of_parts = verify_with_jobs(placed, captured, arguments)) {
    return add_account(std::move(*of_parts), file, arguments);
  }
  SessionOptions options;
  options.policy = arguments.comparison;
  options.path = arguments.path;
  options.plain_first = true;
  if (arguments.wants_cache()) {
    options.cache = choose_cache(file.recording().bus, arguments.cache_model);
    if (options.cache == nullptr)
      console.warn(
          "no cache is compared: the recording declares none; name a model with --cache-model");
  }
  options.progress = replay_progress(file, console);
  std::optional<CodeCheck> code;
  if (!arguments.code.empty()) code.emplace(load_code_files(arguments.code));
  CodeCheck* const observer = code ? &*code : nullptr;
  // A run that starts over executes code once more that was noted already.
  options.start_over = [observer] { return observer; };
  ReplaySession run(file, observer, options);
  const ReplayReport report = run.run();
  if (at_end) at_end(run);
  Verdict verdict = verdict_of(run, report, placed, captured);
  if (code) verdict.code = code->result();
  verdict = add_account(std::move(verdict), file, arguments);
  if (arguments.exact_cache && verdict.cache && verdict.cache->totals.first) {
    verdict.match = false;
    if (!verdict.report.divergence) verdict.report.divergence = cache_divergence(*verdict.cache);
  }
  return verdict;
}

/// All recordings of an archive, one after the other; a captured memory is that at the very end.
ExitCode verify_all(const RecordingFile& first, const MemoryImage* captured,
                    const VerifyArguments& arguments, const Console& console) {
  if (arguments.line) {
    throw UsageError("--at " + std::to_string(*arguments.line) +
                     ": name one of the recordings of " + arguments.recording);
  }
  std::vector<Verdict> verdicts;
  nlohmann::ordered_json each = nlohmann::ordered_json::array();
  const std::size_t count = first.recordings();
  for (std::size_t i = 0; i < count; ++i) {
    const PlacedRecording placed =
        open_placed(arguments.recording + "@" + std::to_string(i), console);
    verdicts.push_back(verify(placed, i + 1 == count ? captured : nullptr, arguments, console));
    each.push_back(verdict_json(verdicts.back()));
    if (arguments.json) continue;
    console.print(fmt::format("recording {} of {}: ", i, count));
    print_text(verdicts.back(), console);
  }
  const Verdict all = sum(verdicts);
  if (arguments.json) {
    nlohmann::ordered_json json = verdict_json(all);
    json["recordings"] = std::move(each);
    console.print_json(json);
  } else {
    console.print("all recordings: ");
    print_text(all, console);
  }
  return all.match ? ExitCode::ok : ExitCode::answer_is_no;
}

/// Verifies one of several processors. Compares with `captured` only the lines that this processor
/// may have changed last, in its cache.
ProcessorVerdict verify_processor(RecordingFile file, const MemoryImage* captured,
                                  const CrossCheck& check, const VerifyArguments& arguments,
                                  const Console& console) {
  ProcessorVerdict its;
  MemoryImage own;
  if (captured != nullptr) own = owned_part(*captured, check, file.number());
  const PlacedRecording placed = place_events_of(std::move(file), console);
  VerifyArguments alone = arguments;
  alone.jobs = 1;
  const auto keep_changed = [&](const ReplaySession& run) {
    its.changed_lines = lines_changed_in_cache(placed.file, run.machine());
  };
  const Verdict verdict =
      verify(placed, own.empty() ? nullptr : &own, alone, console, keep_changed);
  its.memory = {verdict.memory.bytes, verdict.memory.different, std::nullopt};
  its.match = verdict.match;
  its.instructions = verdict.report.instructions;
  its.json = verdict_json(verdict);
  its.remarks = circumstances_text(verdict) + doubts_text(verdict) + account_text(verdict);
  if (verdict.report.divergence)
    its.divergence = divergence_lines(*verdict.report.divergence, verdict.clock_hz);
  return its;
}

/// One of several processors, of which the recording has digests in place of evidence.
ProcessorVerdict verify_digests_of(const RecordingFile& file, const Console& console) {
  const DigestVerdict verdict = verify_digests(file, console);
  ProcessorVerdict its;
  its.match = verdict.match();
  its.instructions = verdict.report.instructions;
  its.json = digest_verdict_json(verdict, file);
  if (verdict.report.divergence) its.divergence = divergence_lines(*verdict.report.divergence);
  if (verdict.differs_before) {
    its.divergence.push_back(
        fmt::format("the replay went another way before instruction {}", *verdict.differs_before));
  }
  return its;
}

void refuse_for_digests(const VerifyArguments& arguments) {
  const auto refuse = [&](bool given, const char* option) {
    if (!given) return;
    throw UsageError(std::string(option) + ": " + arguments.recording +
                     " holds digests in place of evidence");
  };
  refuse(!arguments.code.empty(), "--code");
  refuse(!arguments.memory.empty(), "--memory");
}

/// Refuses --memory if the capture does not show which processor has a line in its cache.
void require_owners(const MachineFile& machine, const BusModel& bus) {
  if (machine.info().shows_sharing || bus.form != CacheForm::write_back) return;
  throw UsageError(
      "--memory: the processors have write-back caches, and the capture does not show who has a "
      "line (HIT#, invalidations): what the caches hold at the end is not known");
}

/// Each processor of a machine, and what they saw of one memory.
ExitCode verify_machine(const MachineFile& machine, const MemoryImage* captured,
                        const VerifyArguments& arguments, const Console& console) {
  if (arguments.line)
    throw UsageError("--at needs --processor P, because the recording has several");
  if (!arguments.hints.empty())
    throw UsageError("--hints needs --processor P, because the recording has several");
  MachineVerdict verdict;
  std::vector<RecordingFile> files = open_processors(machine);
  verdict.has_digests = files.front().meta().evidence == EvidenceMode::digests;
  if (verdict.has_digests) refuse_for_digests(arguments);
  if (captured != nullptr) require_owners(machine, files.front().recording().bus);
  CrossCheck check = cross_check_of(machine, files);
  std::function<void()> meanwhile;
  if (!verdict.has_digests) meanwhile = [&] { verdict.bus = cross_check(machine, files, check); };
  // Captured memory is compared with what each processor may own, which the bus tells.
  if (captured != nullptr) std::exchange(meanwhile, {})();
  const std::vector<std::string> results = run_side_by_side(
      machine.processors(), arguments.jobs,
      [&](std::size_t number) {
        // The bus has been looked at, or this is another process.
        return to_text(verdict.has_digests ? verify_digests_of(files[number], console)
                                           : verify_processor(std::move(files[number]), captured,
                                                              check, arguments, console));
      },
      meanwhile);
  for (const std::string& text : results) verdict.processors.push_back(processor_verdict_of(text));
  check_stores(machine, check, arguments.comparison, verdict);
  if (captured != nullptr) verdict.memory = compare_memory(*captured, check, verdict.processors);
  if (arguments.json) {
    console.print_json(machine_verdict_json(verdict));
  } else {
    print_machine_verdict(verdict, console);
  }
  return verdict.match() ? ExitCode::ok : ExitCode::answer_is_no;
}

ExitCode run_verify(VerifyArguments arguments, const Console& console) {
  arguments.recording = arguments.processor.name(arguments.recording);
  if (const auto machine = find_machine(arguments.recording)) {
    std::optional<MemoryImage> captured;
    if (!arguments.memory.empty()) captured = load_memory_image(arguments.memory);
    return verify_machine(*machine, captured ? &*captured : nullptr, arguments, console);
  }
  RecordingFile file = open_with_hints(arguments.recording, arguments.hints);
  if (file.meta().evidence == EvidenceMode::digests) {
    refuse_for_digests(arguments);
    return run_digest_verify(file, arguments.json, console);
  }
  std::optional<MemoryImage> captured;
  if (!arguments.memory.empty()) captured = load_memory_image(arguments.memory);
  const MemoryImage* const image = captured ? &*captured : nullptr;
  if (file.recordings() > 1 && !parse_recording_name(arguments.recording).number &&
      arguments.hints.empty())
    return verify_all(file, image, arguments, console);
  const PlacedRecording placed = place_events_of(std::move(file), console);
  const Verdict verdict = verify(placed, image, arguments, console);
  if (arguments.json) {
    console.print_json(verdict_json(verdict));
  } else {
    print_text(verdict, console);
  }
  return verdict.match ? ExitCode::ok : ExitCode::answer_is_no;
}

CommandRun define_verify(const CommandParser& parser) {
  auto arguments = std::make_shared<VerifyArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to check").required();
  parser
      .add_option(
          "--memory", arguments->memory,
          "Memory captured at the end: raw from physical address 0, or an image with addresses")
      .type_name(kFileType);
  define_hints(parser, arguments->hints);
  parser
      .add_option("--code", arguments->code,
                  "Compare the code that ran with this file: ELF, or a ROM image as FILE@BASE; "
                  "may be repeated")
      .type_name(kFileType)
      .repeated();
  arguments->processor.define(parser);
  parser
      .add_option("--jobs", arguments->jobs,
                  "Number of processes that compare at the same time: each a processor of the "
                  "machine, or a part of the run between checkpoints")
      .in_range(1, 64)
      .show_default();
  define_comparison(parser, arguments->comparison);
  define_engine(parser, arguments->path);
  const ParserOption account = parser.add_flag(
      "--account", arguments->account,
      "Say what the verdict rests on: what was compared, and what was taken on trust");
  parser
      .add_option("--at", arguments->line,
                  "With --account: say what confirms each input of this instruction")
      .type_name("INSTRUCTION")
      .needs(account);
  parser.add_flag(
      "--cache", arguments->cache,
      "Compare line fills and write-backs with a model of the cache that the recording declares");
  parser.add_option("--cache-model", arguments->cache_model, "The same with the model of this name")
      .type_name(type_of(cache_names()));
  parser.add_flag("--exact-cache", arguments->exact_cache,
                  "The same; a line that only one side fills or writes back is a divergence");
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_verify(*arguments, console); };
}

}  // namespace

extern const Command kVerifyCommand{"verify", "Replay and compare with everything the bus showed",
                                    "citcat verify boot.citcat --memory final.img", define_verify};

}  // namespace citcat
