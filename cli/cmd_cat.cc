#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/file_kind.h"
#include "cli/kt_text.h"
#include "cli/placed_recording.h"
#include "cli/trace_run.h"
#include "formats/byte_sink.h"
#include "formats/error.h"
#include "formats/kt.h"
#include "replay/kt_sink.h"
#include "replay/trace_reader.h"

namespace citcat {
namespace {

struct CatArguments {
  std::string file, format = "kt", addresses = "linear";
  ReplayRange range;
  int bits = 0;
  bool processes = false, unchecked = false, from_start = false;
};

/// Throws UsageError when nothing was found because the trace ends before what was asked for.
void require_instructions(const CatArguments& arguments, std::uint64_t instructions) {
  const ReplayRange& range = arguments.range;
  if (range.from == 0 || range.from >= range.to || instructions > range.from) return;
  throw UsageError(fmt::format("--from {}: {} ends after {} instructions", range.from,
                               arguments.file, instructions));
}

/// A recording as KT: straight from the replay.
ExitCode cat_recording(const CatArguments& arguments, ByteSink& out, const Console& console) {
  const PlacedRecording placed = open_placed(arguments.file, console);
  const RecordingFile& file = placed.file;
  KtOptions kt;
  kt.from = arguments.range.from;
  kt.to = arguments.range.to;
  kt.offsets = arguments.addresses == "offset";
  kt.process_records = arguments.processes;
  KtWriter writer(out);
  KtSink trace(writer, kt);
  TraceRunOptions options;
  options.range = arguments.range;
  options.check = !arguments.unchecked;
  options.use_checkpoints = !arguments.from_start;
  const TraceRunResult result = run_trace(file, &trace, options, console);
  writer.flush();
  result.warn(console);
  if (result.sure() && writer.instructions() == 0) {
    require_instructions(arguments, result.report.instructions);
  }
  return result.sure() ? ExitCode::ok : ExitCode::answer_is_no;
}

void write_record(const KtRecord& record, KtWriter& writer) {
  switch (record.kind) {
    case KtRecord::Kind::instruction:
      writer.instruction(record.instruction);
      break;
    case KtRecord::Kind::process:
      writer.process(record.pid);
      break;
    case KtRecord::Kind::translation:
      writer.translation(record.frame, record.page);
      break;
  }
}

/// A KT file as KT, or anything as text.
void cat_records(const CatArguments& arguments, ByteSink& out) {
  constexpr std::size_t kTextBytes = std::size_t{1} << 16;
  TraceReaderOptions options;
  options.offsets = arguments.addresses == "offset";
  options.process_records = arguments.processes;
  options.check = !arguments.unchecked;
  options.use_checkpoints = !arguments.from_start;
  TraceReader reader(arguments.file, options);
  if (arguments.range.from != 0) reader.seek(arguments.range.from);
  const bool as_kt = arguments.format == "kt";
  const TextForm form = as_kt ? TextForm::text : parse_form(arguments.format);
  KtWriter writer(out);
  Disassembler disassembler(arguments.bits);
  std::string text = as_kt ? "" : kt_text_head(form);
  const auto write_text = [&] {
    out.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    text.clear();
  };
  TraceRecord record;
  bool ended = false, any = false;
  while (!(ended = !reader.next(record)) && record.position.instruction < arguments.range.to) {
    any = true;
    if (as_kt) {
      write_record(record.record, writer);
      continue;
    }
    text += kt_record_text(record.record, record.position.instruction, form, disassembler);
    if (text.size() >= kTextBytes) write_text();
  }
  writer.flush();
  write_text();
  if (ended && !any) require_instructions(arguments, reader.instructions());
}

ExitCode run_cat(const CatArguments& arguments, const Console& console) {
  if (arguments.range.from > arguments.range.to) throw UsageError("--from lies behind --to");
  if (arguments.addresses != "linear" && arguments.addresses != "offset") {
    throw UsageError("--addresses: expected linear or offset, found " + arguments.addresses);
  }
  if (arguments.bits != 0 && arguments.bits != 16 && arguments.bits != 32) {
    throw UsageError("--bits: expected 16 or 32");
  }
  if (arguments.format != "kt") parse_form(arguments.format);
  const FileKind kind = find_file_kind(arguments.file).kind;
  if (kind != FileKind::kt && kind != FileKind::recording) {
    throw FormatError(arguments.file, 0, "expected a recording or a KT trace, found neither");
  }
  // A reader that has seen enough is no failure.
  std::signal(SIGPIPE, SIG_IGN);
  StdoutSink out;
  try {
    if (kind == FileKind::recording && arguments.format == "kt")
      return cat_recording(arguments, out, console);
    cat_records(arguments, out);
  } catch (const ReaderGone&) {
  } catch (const TraceDiverged& diverged) {
    console.warn(diverged.what());
    return ExitCode::answer_is_no;
  }
  return ExitCode::ok;
}

CommandRun define_cat(CLI::App& app) {
  auto arguments = std::make_shared<CatArguments>();
  app.add_option("FILE", arguments->file, "Recording, or KT in any compression")->required();
  app.add_option("--from", arguments->range.from, "First instruction");
  app.add_option("--to", arguments->range.to, "First instruction that is not wanted");
  app.add_option("--format", arguments->format, "kt, text, json (one object a line) or csv");
  app.add_option("--addresses", arguments->addresses, "linear or offset (in the code segment)");
  app.add_option("--bits", arguments->bits, "Disassemble as 16- or 32-bit code (default: guess)");
  app.add_flag("--processes", arguments->processes,
               "PID and MMU records at changes of the address space");
  app.add_flag("--unchecked", arguments->unchecked, "Do not compare with the evidence on the way");
  app.add_flag("--from-start", arguments->from_start, "Use no checkpoint");
  return [arguments](const Console& console) { return run_cat(*arguments, console); };
}

}  // namespace

extern const Command kCatCommand{"cat",
                                 "Write a trace to the standard output, as if it were stored",
                                 "citcat cat boot.citcat --from 1000000 | xxd | head", define_cat};

}  // namespace citcat
