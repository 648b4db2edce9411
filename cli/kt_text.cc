#include "cli/kt_text.h"

#include <fmt/format.h>

#include "cli/transaction_text.h"
#include "formats/error.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

std::string people_text(const KtRecord& record, std::uint64_t number, Disassembler& disassembler) {
  const KtInstruction& i = record.instruction;
  switch (record.kind) {
    case KtRecord::Kind::process:
      return fmt::format("{:>12} process {:x}", "", record.pid);
    case KtRecord::Kind::translation:
      return fmt::format("{:>12} page {:08x} in frame {:x}", "", record.page, record.frame);
    case KtRecord::Kind::instruction:
      break;
  }
  std::string line = fmt::format("{:>12} {:08x} {:<22} {}", number, i.eip, bytes_text(i.bytes()),
                                 disassembler.text(i.bytes(), i.eip));
  for (unsigned a = 0; a < i.address_count; ++a) line += fmt::format(" @{:08x}", i.address[a]);
  return line;
}

Json record_json(const KtRecord& record, std::uint64_t number, Disassembler& disassembler) {
  const KtInstruction& i = record.instruction;
  switch (record.kind) {
    case KtRecord::Kind::process:
      return {{"pid", record.pid}};
    case KtRecord::Kind::translation:
      return {{"page", fmt::format("{:08x}", record.page)}, {"frame", record.frame}};
    case KtRecord::Kind::instruction:
      break;
  }
  Json json;
  json["number"] = number;
  json["eip"] = fmt::format("{:08x}", i.eip);
  json["bytes"] = bytes_text(i.bytes());
  json["text"] = disassembler.text(i.bytes(), i.eip);
  json["addresses"] = Json::array();
  for (unsigned a = 0; a < i.address_count; ++a) {
    json["addresses"].push_back(fmt::format("{:08x}", i.address[a]));
  }
  return json;
}

std::string csv_text(const KtRecord& record, std::uint64_t number) {
  const KtInstruction& i = record.instruction;
  switch (record.kind) {
    case KtRecord::Kind::process:
      return fmt::format("process,,{:x},,,", record.pid);
    case KtRecord::Kind::translation:
      return fmt::format("translation,,{:08x},{:x},,", record.page, record.frame);
    case KtRecord::Kind::instruction:
      break;
  }
  std::string line = fmt::format("instruction,{},{:08x},{}", number, i.eip, bytes_text(i.bytes()));
  for (unsigned a = 0; a < kKtMaxAddresses; ++a) {
    line += a < i.address_count ? fmt::format(",{:08x}", i.address[a]) : ",";
  }
  return line;
}

}  // namespace

TextForm parse_form(const std::string& name) {
  if (name == "text") return TextForm::text;
  if (name == "json") return TextForm::json;
  if (name == "csv") return TextForm::csv;
  throw UsageError("--format: expected text, json or csv, found " + name);
}

std::string kt_text_head(TextForm form) {
  return form == TextForm::csv ? "kind,number,address,bytes,address0,address1\n" : "";
}

std::string kt_record_text(const KtRecord& record, std::uint64_t number, TextForm form,
                           Disassembler& disassembler) {
  switch (form) {
    case TextForm::text:
      return people_text(record, number, disassembler) + "\n";
    case TextForm::json:
      return record_json(record, number, disassembler).dump() + "\n";
    case TextForm::csv:
      return csv_text(record, number) + "\n";
  }
  return "";
}

}  // namespace citcat
