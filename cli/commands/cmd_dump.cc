// citcat dump: the records of a trace, a recording or a capture, for people.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/processor_capture.h"
#include "capture/import/record_csv.h"
#include "capture/import/unknown_file.h"
#include "cli/analysis/scope_arguments.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"
#include "cli/commands/read_data.h"
#include "cli/file_kind.h"
#include "cli/idtrace/idtrace_view.h"
#include "cli/kt_text.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/command_description.h"
#include "cli/placed_recording.h"
#include "cli/range_arguments.h"
#include "cli/select/selected_run.h"
#include "cli/transaction_text.h"
#include "events/archive/recording_file.h"
#include "events/capture_time.h"
#include "events/position_text.h"
#include "events/startup_event.h"
#include "formats/captures/sparse_image.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "replay/trace/trace_reader.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

struct DumpOptions {
  std::string file, format = "text";
  RangeArguments range;
  std::uint64_t from = 0;  ///< of all but KT
  std::uint64_t to = std::numeric_limits<std::uint64_t>::max();
  std::optional<double> from_seconds, to_seconds;  ///< of captures: in place of these
  int bits = 0;
  bool evidence = false, state = false;
  ScopeArguments scope;
  CaptureArguments capture;
  ProcessorArgument processor;
  TextForm form = TextForm::text;

  bool wants(std::uint64_t number) const { return number >= from && number < to; }
};

/// Throws UsageError when --from lies after the last of `count` records.
void require_records(const DumpOptions& options, std::uint64_t count, std::string_view records) {
  if (options.from == 0 || options.from >= options.to || options.from < count) return;
  throw UsageError(
      fmt::format("--from {}: {} ends after {} {}", options.from, options.file, count, records));
}

void print_line(const std::string& line, const Console& console) { console.print(line + "\n"); }

void print_titles(std::string_view titles, TextForm form, const Console& console) {
  if (form == TextForm::text) console.print_titles(titles);
}

// ---- KT ----------------------------------------------------------------------------------------

/// [from, to) are positions.
void dump_kt(const DumpOptions& options, const Console& console) {
  TraceReaderOptions reading;
  reading.events = true;
  reading.wide = true;
  TraceReader reader(options.file, reading);
  if (options.range.first() != Position{}) reader.seek(options.range.first());
  TraceText text(options.form, options.bits);
  print_titles(TraceText::titles(), options.form, console);
  const bool found = print_trace(reader, options.range.end(), text,
                                 [&](const std::string& lines) { console.print(lines); });
  if (!found) options.range.require_reached(options.file, reader.instructions());
}

// ---- captures ----------------------------------------------------------------------------------

/// How the transactions of one capture are printed.
struct TransactionForm {
  TextForm form = TextForm::text;
  std::uint32_t line_bytes = 0;
  double clock_hz = 0;  ///< 0: not known
};

void print_transaction(const BusTransaction& t, bool has_data, const TransactionForm& of,
                       const Console& console) {
  switch (of.form) {
    case TextForm::text:
      print_line(transaction_text(t, has_data, of.clock_hz), console);
      break;
    case TextForm::json:
      console.print_json(transaction_json(t, has_data, of.clock_hz));
      break;
    case TextForm::csv:
      print_line(record_csv_lines(t, of.line_bytes, has_data), console);
      break;
  }
}

/// `next` is the index that the next transaction would have had.
void print_interruption(std::uint64_t next, Ending ending, TextForm form, const Console& console) {
  switch (form) {
    case TextForm::text:
      print_line(fmt::format("interrupted: {}", ending_name(ending)), console);
      break;
    case TextForm::json:
      console.print_json(Json{{"interrupted", ending_name(ending)}});
      break;
    case TextForm::csv:
      print_line(record_csv_cut_line(next, ending), console);
      break;
  }
}

void print_reached(std::uint64_t next, const Position& position, TextForm form,
                   const Console& console) {
  switch (form) {
    case TextForm::text:
      print_line(fmt::format("complete: {} instructions", position_text(position)), console);
      break;
    case TextForm::json:
      console.print_json(
          Json{{"complete", position.instruction}, {"iteration", position.iteration}});
      break;
    case TextForm::csv:
      print_line(record_csv_reached_line(next, position), console);
      break;
  }
}

/// [from, to) of a capture: transactions, or clocks where times were named.
struct CaptureRange {
  std::uint64_t from_clock = 0, to_clock = std::numeric_limits<std::uint64_t>::max();

  /// `clock_hz`: clocks a second, 0 if it is not known.
  CaptureRange(const DumpOptions& options, double clock_hz) {
    for (const auto& [seconds, clock] :
         {std::pair(options.from_seconds, &from_clock), std::pair(options.to_seconds, &to_clock)}) {
      if (!seconds) continue;
      if (clock_hz <= 0)
        throw UsageError("--from, --to: expected a transaction, found a time, and " + options.file +
                         " does not give its sample rate");
      *clock = clock_at(*seconds, clock_hz);
    }
    if (from_clock > to_clock) throw UsageError("--from must come before --to");
  }
  bool wants(const BusTransaction& t) const { return t.clock >= from_clock && t.clock < to_clock; }
};

/// [from, to) are transaction indexes, or times.
void dump_capture(const DumpOptions& options, const Console& console) {
  const std::unique_ptr<CaptureReader> reader =
      open_capture({options.file}, options.capture.options());
  const CaptureRange clocks(options, reader->info().clock_hz);
  if (options.form == TextForm::csv && !reader->info().has_data)
    print_line(fmt::format("{}{}", kRecordCsvDeclaration, kRecordCsvWithoutData), console);
  if (options.form == TextForm::csv) print_line(std::string(record_csv_header()), console);
  print_titles(transaction_titles(reader->info().clock_hz), options.form, console);
  BusTransaction t;
  std::uint64_t segment = 0, next = 0;
  bool more = false;
  do {
    if (segment != 0 && options.form == TextForm::text) {
      print_line(fmt::format("segment {}", segment), console);
    }
    ++segment;
    while (reader->next(t)) {
      if (t.index >= options.to) return;
      drop_count(reader->info(), t);
      if (options.wants(t.index) && clocks.wants(t)) {
        const CaptureInfo& info = reader->info();
        print_transaction(t, info.has_data, {options.form, info.bus.line_bytes, info.clock_hz},
                          console);
      }
      next = t.index + 1;
    }
    const Ending ending = reader->info().ending;
    const std::optional<Position> reached = reader->info().reached;
    more = reader->next_segment();
    if (reached && (options.form != TextForm::csv || !more))
      print_reached(next, *reached, options.form, console);
    // As CSV the segments become one capture, and what would follow the mark could not be read.
    if (is_interrupted(ending) && (options.form != TextForm::csv || !more)) {
      print_interruption(next, ending, options.form, console);
    }
  } while (more);
  require_records(options, next, "transactions");
  // Warnings of sources without a transaction say why there is none.
  if (next == 0) {
    for (const std::string& text : reader->info().warnings) console.warn(text);
    console.warn("the capture shows no transaction; citcat lint looks for the reason");
  }
  if (clocks.from_clock != 0 && clocks.from_clock > t.clock)
    throw UsageError(
        fmt::format("--from: expected a time within the capture, and {} ends after {} s",
                    options.file, static_cast<double>(t.clock) / reader->info().clock_hz));
}

// ---- recordings --------------------------------------------------------------------------------

/// An event of any kind, with the transaction that showed it.
struct EventLine {
  std::uint64_t transaction = 0;
  Json json;
};

Json event_json(std::string_view kind, std::uint64_t transaction, bool known,
                const Position& position) {
  Json json;
  json["event"] = kind;
  json["transaction"] = transaction;
  if (known) {
    json["instruction"] = position.instruction;
    json["iteration"] = position.iteration;
  }
  return json;
}

std::string_view interrupt_kind_name(Interrupt::Kind kind) {
  if (kind == kStartupInterrupt) return "startup";
  if (kind == kResetInterrupt) return "reset";
  switch (kind) {
    case Interrupt::Kind::external:
      return "interrupt";
    case Interrupt::Kind::nmi:
      return "nmi";
    case Interrupt::Kind::smi:
      return "smi";
    case Interrupt::Kind::on_chip:
      return "on-chip interrupt";
    case Interrupt::Kind::none:
      return "marker without an interrupt";
  }
  return "?";
}

/// No transaction shows them: they come after the events before them.
void add_dropped(const std::vector<DroppedTranslation>& dropped, std::vector<EventLine>& lines) {
  if (dropped.empty()) return;
  std::map<Position, std::uint64_t> shown;  // the last transaction of events up to there
  for (const EventLine& line : lines) {
    if (!line.json.contains("instruction")) continue;
    std::uint64_t& last = shown[{line.json["instruction"].get<std::uint64_t>(),
                                 line.json["iteration"].get<std::uint32_t>()}];
    last = std::max(last, line.transaction);
  }
  std::uint64_t most = 0;
  for (auto& [position, transaction] : shown) transaction = most = std::max(most, transaction);
  for (const DroppedTranslation& e : dropped) {
    const auto behind = shown.lower_bound(e.position);
    Json json;
    json["event"] = "translation_dropped";
    json["instruction"] = e.position.instruction;
    json["iteration"] = e.position.iteration;
    json["address"] = fmt::format("{:08x}", e.page.value);
    lines.push_back({behind == shown.begin() ? 0 : std::prev(behind)->second, std::move(json)});
  }
}

std::vector<EventLine> event_lines(const Recording& r) {
  std::vector<EventLine> lines;
  for (const Interrupt& e : r.interrupts) {
    Json json =
        event_json(interrupt_kind_name(e.kind), e.transaction, e.position_known, e.position);
    json["vector"] = e.vector;
    if (e.count) {
      json["counted"] = count_unit_name(e.count->unit);
      json["count"] = e.count->value;
      json["from_start"] = e.count->from_start;
    }
    lines.push_back({e.transaction, std::move(json)});
  }
  for (const IoRead& e : r.io_reads) {
    Json json = event_json("io_read", e.transaction, e.position_known, e.position);
    json["port"] = fmt::format("{:x}", e.port);
    json["size"] = e.size;
    json["value"] = fmt::format("{:x}", e.value);
    lines.push_back({e.transaction, std::move(json)});
  }
  for (const ExternalWrite& e : r.external_writes) {
    Json json = event_json("external_write", e.transaction, e.position_known, e.position);
    json["address"] = fmt::format("{:08x}", e.address.value);
    json["data"] = bytes_text(e.data);
    lines.push_back({e.transaction, std::move(json)});
  }
  add_dropped(r.dropped_translations, lines);
  std::stable_sort(lines.begin(), lines.end(), [](const EventLine& a, const EventLine& b) {
    return a.transaction < b.transaction;
  });
  return lines;
}

Json state_json(const CpuState& state) {
  Json json;
  json["cpu"] = cpu_model_name(state.model);
  for (const std::string& name : register_names(state.model)) {
    const auto value = get_register(state, name);
    if (!value) continue;
    const bool unknown =
        std::find(state.unknown.begin(), state.unknown.end(), name) != state.unknown.end();
    json["registers"][name] = unknown ? Json(nullptr) : Json(fmt::format("0x{:x}", *value));
  }
  for (const Msr& msr : state.msrs) {
    json["msrs"][fmt::format("0x{:x}", msr.index)] = fmt::format("0x{:x}", msr.value);
  }
  for (const CpuidLeaf& leaf : state.cpuid) {
    Json& subleaves = json["cpuid"][fmt::format("0x{:x}", leaf.leaf)];
    subleaves.push_back({{"eax", fmt::format("0x{:x}", leaf.eax)},
                         {"ebx", fmt::format("0x{:x}", leaf.ebx)},
                         {"ecx", fmt::format("0x{:x}", leaf.ecx)},
                         {"edx", fmt::format("0x{:x}", leaf.edx)}});
  }
  return json;
}

std::string plain_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

/// Values of a JSON object as one line for people.
std::string joined(const Json& json) {
  std::string line;
  for (const auto& [key, value] : json.items()) {
    if (!line.empty()) line += ' ';
    line += key + ' ' + plain_value(value);
  }
  return line;
}

/// What events of any kind have, in the order of the columns.
constexpr std::array<const char*, 13> kEventColumns{
    "event",      "transaction", "instruction", "iteration", "vector",  "counted", "count",
    "from_start", "port",        "size",        "value",     "address", "data"};

/// Empty where an event has no such value. No value has a comma: bytes are hexadecimal digits.
std::string event_csv(const Json& json) {
  std::string line;
  for (const char* const column : kEventColumns) {
    if (column != kEventColumns.front()) line += ',';
    const auto found = json.find(column);
    if (found != json.end()) line += plain_value(*found);
  }
  return line;
}

void print_event(const Json& json, TextForm form, const Console& console) {
  switch (form) {
    case TextForm::text:
      print_line(joined(json), console);
      break;
    case TextForm::json:
      console.print_json(json);
      break;
    case TextForm::csv:
      print_line(event_csv(json), console);
      break;
  }
}

void dump_state(const CpuState& state, TextForm form, const Console& console) {
  const Json json = state_json(state);
  if (form == TextForm::json) {
    console.print_json(json);
    return;
  }
  const char separator = form == TextForm::csv ? ',' : ' ';
  print_titles("register value", form, console);
  if (form == TextForm::csv) print_line("register,value", console);
  const Json registers = json.value("registers", Json::object());
  for (const auto& [name, value] : registers.items()) {
    const std::string shown = value.is_null() ? "?" : value.get<std::string>();
    print_line(fmt::format("{}{}{}", name, separator, shown), console);
  }
}

void dump_evidence(const RecordingFile& file, const DumpOptions& options, const Console& console) {
  const std::unique_ptr<EvidenceReader> evidence = file.evidence();
  if (options.form == TextForm::csv) print_line(std::string(record_csv_header()), console);
  const TransactionForm form{options.form, file.recording().bus.line_bytes,
                             clock_rate(file.recording().provenance)};
  print_titles(transaction_titles(form.clock_hz), options.form, console);
  const CaptureRange clocks(options, form.clock_hz);
  ReadData reads(file.recording());
  BusTransaction t;
  std::uint64_t next = 0;
  while (evidence->next(t)) {
    if (t.index >= options.to) return;
    next = t.index + 1;
    const bool known = reads.complete(t);
    if (options.wants(t.index) && clocks.wants(t)) print_transaction(t, known, form, console);
  }
  require_records(options, next, "transactions");
}

/// The index after the last transaction; nothing where the evidence is not there to tell.
std::optional<std::uint64_t> end_of(const RecordingFile& file) {
  if (file.meta().evidence != EvidenceMode::full) return std::nullopt;
  const std::unique_ptr<EvidenceReader> evidence = file.evidence();
  std::uint64_t end = 0;
  for (BusTransaction t; evidence->next(t);) end = t.index + 1;
  return end;
}

void dump_events(const RecordingFile& file, const DumpOptions& options, const Console& console) {
  bool any = false;
  if (options.form == TextForm::csv)
    print_line(fmt::format("{}", fmt::join(kEventColumns, ",")), console);
  for (const EventLine& line : event_lines(file.recording())) {
    if (!options.wants(line.transaction)) continue;
    print_event(line.json, options.form, console);
    any = true;
  }
  if (any || options.from == 0) return;
  if (const auto end = end_of(file)) require_records(options, *end, "transactions");
}

/// What is selected of the run of a recording. [from, to) are positions.
ExitCode dump_selected(const DumpOptions& options, const Console& console) {
  if (options.state || options.evidence) {
    throw UsageError("--where, --by and --window exclude --state and --evidence");
  }
  SelectedRun run;
  run.recording = options.file;
  run.range = options.range;
  options.scope.apply_to(run.plan);
  if (run.plan.by.empty()) print_titles(TraceText::titles(), options.form, console);
  return print_selected(
      run, options.form, options.bits, [&](const std::string& lines) { console.print(lines); },
      console);
}

/// [from, to) are indexes of transactions in the capture.
void dump_recording(const DumpOptions& options, const Console& console) {
  const RecordingFile file = RecordingFile::open(options.file);
  tell_of_others(file, options.file, console);
  if (options.state) {
    dump_state(file.recording().initial, options.form, console);
  } else if (options.evidence) {
    dump_evidence(file, options, console);
  } else {
    dump_events(file, options, console);
  }
}

// ---- memory images -----------------------------------------------------------------------------

/// [from, to) are addresses.
void dump_memory(const DumpOptions& options, const Console& console) {
  constexpr std::size_t kRow = 16;
  MemoryFileReader reader(options.file);
  MemoryFileReader::Part part;
  print_titles("address  bytes", options.form, console);
  if (options.form == TextForm::csv) print_line("address,bytes", console);
  std::uint64_t end = 0;
  while (reader.next(part)) {
    end = std::uint64_t{part.address} + part.bytes.size();
    for (std::size_t at = 0; at < part.bytes.size(); at += kRow) {
      const std::uint64_t address = part.address + at;
      if (!options.wants(address)) continue;
      const auto row = part.bytes.subspan(at, std::min(kRow, part.bytes.size() - at));
      if (options.form == TextForm::json) {
        console.print_json(
            {{"address", fmt::format("{:08x}", address)}, {"bytes", bytes_text(row)}});
      } else {
        const char separator = options.form == TextForm::csv ? ',' : ' ';
        print_line(fmt::format("{:08x}{}{}", address, separator, bytes_text(row)), console);
      }
    }
  }
  require_records(options, end, "bytes of memory");
}

// ------------------------------------------------------------------------------------------------

ExitCode run_dump(DumpOptions options, const Console& console) {
  options.form = parse_form(options.format);
  check_bits(options.bits);
  // A time stands for no number before the capture's rate is known.
  for (const auto& [text, seconds] : {std::pair(&options.range.from, &options.from_seconds),
                                      std::pair(&options.range.to, &options.to_seconds)}) {
    *seconds = parse_capture_time(*text);
    if (*seconds) text->clear();
  }
  options.processor.take_from(options.range);
  const ReplayRange range = options.range.instructions();
  options.from = range.from;
  options.to = range.to;
  const FileKind kind =
      options.capture.given() ? FileKind::capture : find_file_kind(options.file).kind;
  const bool transactions =
      kind == FileKind::capture || (kind == FileKind::recording && options.evidence);
  if (!transactions && (options.from_seconds || options.to_seconds)) {
    throw UsageError(
        "--from, --to: a time needs a capture of pins, or --evidence with a recording of one, "
        "and " +
        options.file + " is neither");
  }
  if (kind != FileKind::kt && options.range.within_repeat()) {
    throw UsageError("--from, --to: expected a number, found N+K, which is a position in a trace");
  }
  if (kind == FileKind::recording) options.file = options.processor.name(options.file);
  if (kind == FileKind::capture && options.processor.number) {
    options.capture.format =
        format_of_processor(options.file, options.capture.options(), *options.processor.number);
  }
  if (options.scope.selects()) {
    if (kind != FileKind::recording) {
      throw FormatError(options.file, 0,
                        "expected a recording: --where, --by and --window need a replay");
    }
    return dump_selected(options, console);
  }
  switch (kind) {
    case FileKind::kt:
      dump_kt(options, console);
      break;
    case FileKind::capture:
      dump_capture(options, console);
      break;
    case FileKind::recording:
      dump_recording(options, console);
      break;
    case FileKind::memory:
      dump_memory(options, console);
      break;
    case FileKind::idtrace_trace:
    case FileKind::idtrace_blocks:
    case FileKind::idtrace_counts:
      print_idtrace_file({options.file, {}, options.from, options.to, options.form}, kind, console);
      break;
    case FileKind::unknown:
      throw FormatError(options.file, 0,
                        "expected a recording, capture, memory image or KT trace, found " +
                            what_was_found(options.file));
  }
  return ExitCode::ok;
}

CommandRun define_dump(const CommandParser& parser) {
  auto options = std::make_shared<DumpOptions>();
  parser.add_option("FILE", options->file, "KT trace, recording, capture or memory image")
      .required();
  parser.add_option("--from", options->range.from,
                    "Where to begin: a position N or N+K (trace, recording), a transaction or a "
                    "time such as 1.5ms (capture, evidence) or an address (memory)");
  parser.add_option("--to", options->range.to,
                    "Where to stop, as --from: this one is not included");
  define_text_form(parser, options->format, {"text", "json", "csv"});
  options->capture.define_pins(parser);
  options->processor.define(parser);
  parser
      .add_option(
          "--bits", options->bits,
          "Disassemble KT as 16- or 32-bit code (default: as the trace says, or else a guess)")
      .type_name(type_of({"16", "32"}));
  parser.add_flag("--evidence", options->evidence,
                  "Print the evidence of a recording, not its events");
  options->scope.define(parser);
  parser.add_flag("--state", options->state, "Print the initial registers of a recording");
  return [options](const Console& console) { return run_dump(*options, console); };
}

}  // namespace

extern const Command kDumpCommand{
    "dump", "Print the records of a file for people",
    "citcat dump boot.kt --from 1000 --to 1020\n"
    "citcat dump boot.citcat --where 'level=3 & process=sh' --by process",
    define_dump};

}  // namespace citcat
