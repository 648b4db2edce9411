#include "cli/kt_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/parsing/command_description.h"
#include "cli/transaction_text.h"
#include "events/capture_time.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;
using Kind = KtNote::Kind;

Json event_json(const KtNote& e) {
  Json json;
  json["event"] = kt_note_name(e.kind);
  json["number"] = e.place.instruction;
  json["iteration"] = e.place.iteration;
  switch (kt_note_form(e.kind)) {
    case KtNoteForm::vector:
      json["vector"] = e.where;
      if (e.kind == Kind::exception) json["error_code"] = e.value;
      break;
    case KtNoteForm::port:
      json["port"] = fmt::format("{:x}", e.where);
      json["size"] = e.size;
      json["value"] = fmt::format("{:x}", e.value);
      break;
    case KtNoteForm::address:
      json["address"] = fmt::format("{:08x}", e.where);
      json["size"] = e.size;
      break;
    case KtNoteForm::page:
      json["page"] = kt_note_page(e);
      break;
    case KtNoteForm::bare:
      break;
  }
  return json;
}

/// kind,number,address,bytes,address0,address1,iteration,mode,mode_source
std::string event_csv(const KtNote& e) {
  std::string where, size, value;
  switch (kt_note_form(e.kind)) {
    case KtNoteForm::vector:
      where = fmt::format("{:x}", e.where);
      if (e.kind == Kind::exception) value = fmt::format("{:x}", e.value);
      break;
    case KtNoteForm::port:
      where = fmt::format("{:x}", e.where);
      value = fmt::format("{:x}", e.value);
      size = fmt::format("{:x}", e.size);
      break;
    case KtNoteForm::address:
      where = fmt::format("{:08x}", e.where);
      size = fmt::format("{:x}", e.size);
      break;
    case KtNoteForm::page:
      where = kt_note_page(e);
      break;
    case KtNoteForm::bare:
      break;
  }
  return fmt::format("{},{},{},,{},{},{},,", kt_note_name(e.kind), e.place.instruction, where,
                     value, size, e.place.iteration);
}

/// Size of the instruction's code, where trace or record tell it; else 0.
int told_bits(const TraceRecord& record) {
  return record.bits != 0 ? record.bits : record.record.instruction.bits;
}

constexpr const char* kWithoutNotes =
    "; The trace does not say whether its code is 16-bit or 32-bit, nor where it begins: the size "
    "is guessed (--bits\n; sets it), positions count from the first record, and iterations of a "
    "REP are recognised by their repetition.\n";

}  // namespace

void define_text_form(const CommandParser& parser, std::string& format,
                      const std::vector<std::string>& names) {
  const ParserOption named =
      parser
          .add_option("--format", format,
                      fmt::format("Format of the output (default: {}); json is one object a line",
                                  names.front()))
          .type_name(type_of(names));
  parser
      .on_flag(
          "--json", [&format] { format = "json"; }, "The same as --format json")
      .excludes(named);
}

TextForm parse_form(const std::string& name) {
  if (name == "text") return TextForm::text;
  if (name == "json") return TextForm::json;
  if (name == "csv") return TextForm::csv;
  throw UsageError("--format: expected text, json or csv, found " + name);
}

void check_bits(int bits) {
  if (bits != 0 && bits != 16 && bits != 32)
    throw UsageError(fmt::format("--bits: expected 16 or 32, found {}", bits));
}

std::string_view TraceText::titles() {
  return "    position address  bytes                  instruction, or event";
}

std::string TraceText::head() const {
  if (form_ != TextForm::csv) return "";
  std::string titles = "kind,number,address,bytes,address0,address1,iteration,mode,mode_source";
  return titles + (clocks_ ? ",clock,seconds\n" : "\n");
}

TraceText::Code TraceText::disassemble(const TraceRecord& record) {
  const KtInstruction& i = record.record.instruction;
  if (given_ != 0) return {Disassembler(given_).text(i.bytes(), i.wide_eip()), given_, "given"};
  if (const int bits = told_bits(record); bits != 0) {
    return {Disassembler(bits).text(i.bytes(), i.wide_eip()), bits, "recorded"};
  }
  std::string text = guess_.text(i.bytes(), i.wide_eip());
  return {std::move(text), guess_.bits(), "guessed"};
}

/// The clock, and where the rate is known the time, each with a blank before it.
std::string TraceText::clock_columns(const TraceRecord& record) const {
  std::string columns = fmt::format(" {:>12}", record.clock ? std::to_string(*record.clock) : "-");
  if (clock_hz_ > 0) {
    columns += fmt::format(
        " {:>14}", record.clock ? capture_time_text(*record.clock, clock_hz_) : std::string("-"));
  }
  return columns;
}

std::string TraceText::people_text(const TraceRecord& record) {
  const std::string clock = clocks_ ? clock_columns(record) : "";
  if (record.is_event) {
    return fmt::format("{:>12}{} {}", position_text(record.position), clock,
                       kt_note_text(record.event));
  }
  const KtRecord& r = record.record;
  const KtInstruction& i = r.instruction;
  switch (r.kind) {
    case KtRecord::Kind::process:
      return fmt::format("{:>12}{} process {:x}", "", clock, r.pid);
    case KtRecord::Kind::translation:
      return fmt::format("{:>12}{} page {:08x} in frame {:x}", "", clock, r.wide_page(), r.frame);
    case KtRecord::Kind::instruction:
      break;
  }
  std::string line = std::exchange(warned_, true) || told_bits(record) != 0 ? "" : kWithoutNotes;
  line += fmt::format("{:>12}{} {:08x} {:<22} {}", position_text(record.position), clock,
                      i.wide_eip(), bytes_text(i.bytes()), disassemble(record).text);
  for (unsigned a = 0; a < i.address_count; ++a) line += fmt::format(" @{:08x}", i.wide_address(a));
  return line;
}

std::string TraceText::json_text(const TraceRecord& record) {
  Json json = record_json(record);
  if (!clocks_) return citcat::json_text(json);
  json["clock"] = json["seconds"] = nullptr;
  if (record.clock) {
    json["clock"] = *record.clock;
    if (clock_hz_ > 0) json["seconds"] = static_cast<double>(*record.clock) / clock_hz_;
  }
  return citcat::json_text(json);
}

nlohmann::ordered_json TraceText::record_json(const TraceRecord& record) {
  if (record.is_event) return event_json(record.event);
  const KtRecord& r = record.record;
  const KtInstruction& i = r.instruction;
  Json json;
  switch (r.kind) {
    case KtRecord::Kind::process:
      return Json{{"pid", r.pid}};
    case KtRecord::Kind::translation:
      return Json{{"page", fmt::format("{:08x}", r.wide_page())}, {"frame", r.frame}};
    case KtRecord::Kind::instruction:
      break;
  }
  const Code code = disassemble(record);
  json["number"] = record.position.instruction;
  json["iteration"] = record.position.iteration;
  json["position_source"] = record.bits != 0 ? "recorded" : "derived";
  json["eip"] = fmt::format("{:08x}", i.wide_eip());
  json["bytes"] = bytes_text(i.bytes());
  json["text"] = code.text;
  json["mode"] = std::to_string(code.bits);
  json["mode_source"] = code.source;
  json["addresses"] = Json::array();
  for (unsigned a = 0; a < i.address_count; ++a) {
    json["addresses"].push_back(fmt::format("{:08x}", i.wide_address(a)));
  }
  return json;
}

std::string TraceText::csv_text(const TraceRecord& record) {
  if (record.is_event) return event_csv(record.event);
  const KtRecord& r = record.record;
  const KtInstruction& i = r.instruction;
  switch (r.kind) {
    case KtRecord::Kind::process:
      return fmt::format("process,,{:x},,,,,,", r.pid);
    case KtRecord::Kind::translation:
      return fmt::format("translation,,{:08x},{:x},,,,,", r.wide_page(), r.frame);
    case KtRecord::Kind::instruction:
      break;
  }
  std::string line = fmt::format("instruction,{},{:08x},{}", record.position.instruction,
                                 i.wide_eip(), bytes_text(i.bytes()));
  for (unsigned a = 0; a < kKtMaxAddresses; ++a) {
    line += a < i.address_count ? fmt::format(",{:08x}", i.wide_address(a)) : ",";
  }
  line += fmt::format(",{},", record.position.iteration);
  const int bits = told_bits(record);
  return line + (bits != 0 ? fmt::format("{},recorded", bits) : ",");
}

/// The last columns, where clocks are shown.
std::string TraceText::csv_clock(const TraceRecord& record) const {
  if (!clocks_) return "";
  if (!record.clock) return ",,";
  std::string columns = fmt::format(",{},", *record.clock);
  if (clock_hz_ > 0)
    columns += fmt::format("{:.9f}", static_cast<double>(*record.clock) / clock_hz_);
  return columns;
}

std::string TraceText::line(const TraceRecord& record) {
  switch (form_) {
    case TextForm::text:
      return people_text(record) + "\n";
    case TextForm::json:
      return json_text(record) + "\n";
    case TextForm::csv:
      return csv_text(record) + csv_clock(record) + "\n";
  }
  return "";
}

}  // namespace citcat
