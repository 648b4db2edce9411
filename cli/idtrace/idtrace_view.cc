#include "cli/idtrace/idtrace_view.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/idtrace/count_file.h"
#include "formats/idtrace/idtrace_reader.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "formats/text/printable_text.h"
#include "x86/disassembler.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

/// A row in the form asked for: its values by name, in their order.
void print_row(const Json& row, const std::string& text, const IdtraceView& view,
               const Console& console) {
  if (view.form == TextForm::json) return console.print_json(row);
  if (view.form == TextForm::text) return console.print(text + "\n");
  std::string line;
  for (const auto& [key, value] : row.items()) {
    line += (line.empty() ? "" : ",") + (value.is_string() ? csv_field(value.get<std::string>())
                                         : value.is_null() ? ""
                                                           : json_text(value));
  }
  console.print(line + "\n");
}

void print_head(const char* columns, const IdtraceView& view, const Console& console) {
  if (view.form == TextForm::csv) console.print(std::string(columns) + "\n");
}

/// Throws UsageError where `from` lies after all `count` rows.
void require_reached(const IdtraceView& view, std::uint64_t count) {
  if (view.from == 0 || view.from < count) return;
  throw UsageError(fmt::format("--from {}: {} ends after {}", view.from, view.file, count));
}

// ---- .trc --------------------------------------------------------------------------------------

std::string opcode_text(const IdtraceEntry& entry) {
  switch (entry.tag) {
    case IdtraceTag::control:
      return fmt::format("{:02x}", entry.opcode[0]);
    case IdtraceTag::control_two:
      return fmt::format("{:02x} {:02x}", entry.opcode[0], entry.opcode[1]);
    default:
      return "";
  }
}

void view_trace(const IdtraceView& view, const Console& console) {
  IdtraceReader trace(view.file);
  print_head("number,tag,size,value,opcode", view, console);
  IdtraceEntry entry;
  std::uint64_t number = 0;
  for (; number < view.to && trace.next(entry); ++number) {
    if (!view.wants(number)) continue;
    const std::string tag(idtrace_tag_name(entry.tag)), opcode = opcode_text(entry);
    const unsigned size = idtrace_size_bytes(entry.size_code);
    const std::string value = fmt::format("{:08x}", entry.value);
    Json row{
        {"number", number}, {"tag", tag}, {"size", nullptr}, {"value", value}, {"opcode", opcode}};
    if (size != 0) row["size"] = size;
    std::string text = fmt::format("{:>12} {:<12} {} {}", number, tag, value,
                                   size != 0 ? std::to_string(size) : opcode);
    text.resize(text.find_last_not_of(' ') + 1);
    print_row(row, text, view, console);
  }
  require_reached(view, number);
}

// ---- .blk --------------------------------------------------------------------------------------

void view_block(const IdtraceProgram& program, std::size_t number, const IdtraceView& view,
                const Console& console) {
  const IdtraceBlock& block = (*program.blocks)[number];
  std::uint32_t begin = 0;
  for (const IdtraceInstruction& i : block.instructions) {
    const std::uint32_t address = block.address + begin;
    std::string code;
    if (program.code) {
      const auto bytes = program.code->code(block).subspan(begin, i.bytes);
      code = Disassembler(static_cast<int>(program.code->bits(block))).text(bytes, address);
    }
    begin += i.bytes;
    const Json row{{"block", number},
                   {"position", block.position},
                   {"address", fmt::format("{:08x}", address)},
                   {"bytes", i.bytes},
                   {"entries", i.entries},
                   {"id", static_cast<std::uint16_t>(i.id)},
                   {"text", code}};
    const std::string text =
        fmt::format("{:>8} {:08x} {:08x} {:>2} {:>2} {:04x} {}", number, block.position, address,
                    i.bytes, i.entries, static_cast<std::uint16_t>(i.id), code);
    print_row(row, text, view, console);
  }
}

void view_blocks(const IdtraceView& view, const Console& console) {
  const IdtraceProgram program = view.idtrace.load(view.file, false);
  print_head("block,position,address,bytes,entries,id,text", view, console);
  require_reached(view, program.blocks->size());
  for (std::size_t i = 0; i < program.blocks->size(); ++i) {
    if (view.wants(i)) view_block(program, i, view, console);
  }
}

// ---- .cnt --------------------------------------------------------------------------------------

void view_counts(const IdtraceView& view, const Console& console) {
  const IdtraceProgram program = view.idtrace.load(view.file, false);
  const IdtraceCounts counts = IdtraceCounts::load(view.file, program.blocks->size());
  counts.require(*program.blocks, view.file);
  print_head("block,address,instructions,executions", view, console);
  require_reached(view, counts.executions.size());
  for (std::size_t i = 0; i < counts.executions.size(); ++i) {
    if (!view.wants(i)) continue;
    const IdtraceBlock& block = (*program.blocks)[i];
    const std::string address = fmt::format("{:08x}", block.address);
    const std::size_t size = block.instructions.size();
    const Json row{{"block", i},
                   {"address", address},
                   {"instructions", size},
                   {"executions", counts.executions[i]}};
    print_row(row, fmt::format("{:>8} {} {:>4} {:>12}", i, address, size, counts.executions[i]),
              view, console);
  }
}

}  // namespace

void print_idtrace_file(const IdtraceView& view, FileKind kind, const Console& console) {
  switch (kind) {
    case FileKind::idtrace_trace:
      return view_trace(view, console);
    case FileKind::idtrace_blocks:
      return view_blocks(view, console);
    case FileKind::idtrace_counts:
      return view_counts(view, console);
    default:
      throw FormatError(view.file, 0,
                        "expected a recording, or a .trc, .blk or .cnt file of IDtrace, found " +
                            std::string(file_kind_name(kind)));
  }
}

}  // namespace citcat
