// citcat info: what a file is, and its totals.

#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "capture/import/unknown_file.h"
#include "cli/capture_arguments.h"
#include "cli/command.h"
#include "cli/file_kind.h"
#include "cli/idtrace/idtrace_report.h"
#include "cli/machine/machine_info.h"
#include "cli/machine/processor_argument.h"
#include "cli/report/recording_info.h"
#include "cli/report/storage_account.h"
#include "events/archive/container.h"
#include "events/archive/recording_file.h"
#include "events/position_text.h"
#include "formats/captures/sparse_image.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "formats/kt/kt.h"
#include "formats/text/one_line.h"
#include "replay/trace/trace_reader.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  std::string file;
  CaptureArguments capture;
  ProcessorArgument processor;
  bool json = false, trace = false;
};

/// Counts a capture's transactions, all segments of it.
Json capture_info(const std::string& path, const CaptureOptions& options, const Console& console) {
  const std::unique_ptr<CaptureReader> reader = open_capture({path}, options);
  Progress progress = console.progress("reading", "transactions");
  std::array<std::uint64_t, kBusOpCount> counts{};
  std::uint64_t total = 0, positions = 0, segments = 0, last_clock = 0;
  BusTransaction t;
  do {
    ++segments;
    while (reader->next(t)) {
      ++counts[static_cast<std::size_t>(t.op)];
      if (t.has(kPositionKnown)) ++positions;
      if (t.has(kClockKnown)) last_clock = t.clock;
      if (++total % 65536 == 0) progress.update(total);
    }
  } while (reader->next_segment());
  const CaptureInfo& info = reader->info();
  Json json;
  json["format"] = info.format;
  json["cpu"] = cpu_model_name(info.cpu);
  json["segments"] = segments;
  json["transactions"] = total;
  json["end"] = ending_name(info.ending);
  json["interrupted"] = is_interrupted(info.ending);
  json["with_position"] = positions;
  json["last_clock"] = nullptr;
  if (info.has_clock) json["last_clock"] = last_clock;
  json["clock_hz"] = nullptr;
  json["seconds"] = nullptr;
  if (info.clock_hz > 0) {
    json["clock_hz"] = info.clock_hz;
    json["seconds"] = static_cast<double>(last_clock) / info.clock_hz;
  }
  json["has_data"] = info.has_data;
  for (std::size_t op = 0; op < counts.size(); ++op) {
    json["operations"][std::string(bus_op_name(static_cast<BusOp>(op)))] = counts[op];
  }
  json["bus"] = bus_json(info.bus);
  json["files"] = files_json(info.files);
  json["warnings"] = info.warnings;
  return json;
}

/// Bytes of an instruction's record of 64 bits.
std::uint64_t wide_bytes(const KtInstruction& i) {
  constexpr std::uint64_t kWord = 8, kHead = 9;  // address and type
  return (kHead + i.size + kWord - 1) / kWord * kWord + kWord * i.address_count;
}

/// What is in a KT file.
struct KtTotals {
  std::uint64_t executions = 0, processes = 0, translations = 0, addresses = 0, code_bytes = 0,
                bytes = 0;
  std::optional<Position> first;
  bool recorded = false;  ///< positions and sizes of code are told, not derived

  void add(const TraceRecord& record, bool wide) {
    const KtInstruction& i = record.record.instruction;
    switch (record.record.kind) {
      case KtRecord::Kind::instruction:
        addresses += i.address_count;
        code_bytes += i.size;
        bytes += wide ? wide_bytes(i) : kt_fixed_bytes(i.size) + std::size_t{4} * i.address_count;
        if (!first) first = record.position;
        recorded = record.bits != 0;
        ++executions;
        return;
      case KtRecord::Kind::process:
        ++processes;
        break;
      case KtRecord::Kind::translation:
        ++translations;
        break;
    }
    const bool process = record.record.kind == KtRecord::Kind::process;
    constexpr std::uint64_t kOtherRecord = 8;
    bytes += kOtherRecord * (!wide ? 1 : process ? 2 : 3);
  }
};

Json kt_info(const std::string& path, const Console& console) {
  TraceReaderOptions options;
  options.events = true;
  options.wide = true;
  TraceReader reader(path, options);
  Progress progress = console.progress("reading", "records");
  KtTotals totals;
  std::map<std::string, std::uint64_t> events;
  for (const TraceRecord& record : reader) {
    if (record.is_event) {
      ++events[kt_note_name(record.event.kind)];
      continue;
    }
    totals.add(record, reader.is_wide());
    if (totals.executions % 65536 == 0) progress.update(totals.executions);
  }
  Json json;
  const Position first = totals.first.value_or(Position{}), end = reader.position();
  json["instructions"] = totals.first ? end.instruction - first.instruction : 0;
  json["executions"] = totals.executions;
  json["first_position"] = position_text(first);
  json["end_position"] = position_text(end);
  json["positions"] = totals.recorded ? "recorded" : "derived";
  json["addresses"] = totals.addresses;
  json["instruction_bytes"] = totals.code_bytes;
  json["process_records"] = totals.processes;
  json["translation_records"] = totals.translations;
  json["events"] = Json(events);
  json["bytes"] = totals.bytes + (reader.is_wide() ? kKtWideMark.size() : 0);
  return json;
}

Json memory_info(const std::string& path) {
  MemoryFileReader reader(path);
  MemoryFileReader::Part part;
  std::uint64_t bytes = 0, ranges = 0, next = 0;
  while (reader.next(part)) {
    if (bytes == 0 || part.address != next) ++ranges;
    bytes += part.bytes.size();
    next = std::uint64_t{part.address} + part.bytes.size();
  }
  Json json;
  json["form"] = memory_file_form_name(reader.form());
  json["bytes"] = bytes;
  json["ranges"] = ranges;
  return json;
}

/// A value on one line; of an object its parts: "name boot.sr, bytes 304".
std::string text_of(const Json& value) {
  if (value.is_string()) return one_line(value.get<std::string>());
  if (!value.is_object()) return json_text(value);
  std::string text;
  for (const auto& [key, part] : value.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, text_of(part));
  return text;
}

void print_text(const Json& json, const std::string& indent, const Console& console) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_null() || (value.is_array() && value.empty())) continue;
    if (value.is_object()) {
      console.print_line(fmt::format("{}{}", indent, key));
      print_text(value, indent + "  ", console);
    } else if (value.is_array()) {
      console.print_line(fmt::format("{}{}", indent, key));
      for (const Json& item : value) {
        console.print_line(fmt::format("{}  {}", indent, text_of(item)));
      }
    } else {
      console.print_line(fmt::format("{}{:<20} {}", indent, key, text_of(value)));
    }
  }
}

ExitCode run_info(const InfoOptions& options, const Console& console) {
  const FoundFile found = options.capture.given() ? FoundFile{FileKind::capture, nullptr}
                                                  : find_file_kind(options.file);
  Json json;
  json["file"] = options.file;
  json["kind"] = file_kind_name(found.kind);
  switch (found.kind) {
    case FileKind::recording: {
      const std::string name = options.processor.name(options.file);
      if (const auto machine = find_machine(name)) {
        if (options.trace)
          throw UsageError("--trace needs --processor P, because the recording has several");
        json.update(machine_info(*machine));
        break;
      }
      const RecordingFile file = RecordingFile::open(name);
      json.update(recording_info(file));
      if (file.recordings() > 1 && !parse_recording_name(name).number) {
        json["all_recordings"] = all_recordings_info(name, file.recordings());
      }
      if (options.trace) json["trace"] = trace_json(file, console);
    } break;
    case FileKind::capture:
      json.update(capture_info(options.file, options.capture.options(), console));
      break;
    case FileKind::memory:
      json.update(memory_info(options.file));
      break;
    case FileKind::kt:
      json.update(kt_info(options.file, console));
      break;
    case FileKind::idtrace_trace:
      json.update(idtrace_trace_info(options.file));
      break;
    case FileKind::idtrace_blocks:
      json.update(idtrace_blocks_info(options.file));
      break;
    case FileKind::idtrace_counts:
      json.update(idtrace_counts_info(options.file));
      break;
    case FileKind::unknown:
      throw FormatError(
          options.file, 0,
          "expected a recording, capture, memory image, KT trace or IDtrace file, found " +
              what_was_found(options.file));
  }
  if (options.json) {
    console.print_json(json);
  } else {
    print_text(json, "", console);
  }
  return ExitCode::ok;
}

CommandRun define_info(const CommandParser& parser) {
  auto options = std::make_shared<InfoOptions>();
  parser
      .add_option("FILE", options->file,
                  "Recording, capture, memory image, KT trace or IDtrace file")
      .required();
  options->capture.define(parser);
  options->processor.define(parser);
  parser.add_flag("--trace", options->trace, "Replay the recording and measure its trace");
  parser.add_flag("--json", options->json, "Print one line of JSON");
  return [options](const Console& console) { return run_info(*options, console); };
}

}  // namespace

extern const Command kInfoCommand{"info", "Say what a file is, and give its totals",
                                  "citcat info boot.citcat", define_info};

}  // namespace citcat
