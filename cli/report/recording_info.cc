#include "cli/report/recording_info.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "capture/bus/cache_form.h"
#include "cli/interrupt.h"
#include "cli/report/storage_account.h"
#include "events/archive/container.h"
#include "events/capture_time.h"
#include "events/completed_instructions.h"

namespace citcat {

using Json = nlohmann::ordered_json;

Json bus_json(const BusModel& bus) {
  Json json;
  json["cache"] = cache_form_name(bus.form);
  json["line_bytes"] = bus.line_bytes;
  json["bus_bytes"] = bus.bus_bytes;
  json["address_mask"] = fmt::format("0x{:x}", bus.address_mask);
  return json;
}

Json files_json(const std::vector<Provenance::File>& files) {
  Json json = Json::array();
  for (const Provenance::File& file : files) {
    json.push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", file.xxh3}});
  }
  return json;
}

Json recording_info(const RecordingFile& file) {
  const Recording& r = file.recording();
  Json json;
  json["cpu"] = cpu_model_name(r.initial.model);
  json["instructions"] = nullptr;
  if (const auto known = completed_instructions(r)) json["instructions"] = *known;
  json["clock_hz"] = nullptr;
  json["seconds"] = nullptr;
  if (const double rate = clock_rate(r.provenance); rate > 0) {
    json["clock_hz"] = rate;
    if (const auto clocks = file.evidence_clocks()) {
      json["seconds"] = static_cast<double>(clocks->last - clocks->first) / rate;
    }
  }
  json["end"] = ending_name(r.ending);
  json["interrupted"] = is_interrupted(r.ending);
  json["transactions"] = r.totals.transactions;
  json["reads"] = r.totals.reads;
  json["writes"] = r.totals.writes;
  json["line_fills"] = r.totals.line_fills;
  json["write_backs"] = r.totals.write_backs;
  json["instruction_starts"] = r.totals.instruction_starts;
  json["image_bytes"] = r.image.byte_count();
  json["interrupts"] = r.interrupts.size();
  json["io_reads"] = r.io_reads.size();
  json["io_writes"] = r.totals.io_writes;
  json["external_writes"] = r.external_writes.size();
  json["internal_reads"] = r.internal_reads.size();
  if (!r.dropped_translations.empty()) json["dropped_translations"] = r.dropped_translations.size();
  json["unknown_registers"] = r.initial.unknown;
  json["bus"] = bus_json(r.bus);
  json["source"] = {{"format", r.provenance.format}, {"files", files_json(r.provenance.files)}};
  if (!r.provenance.options.empty()) {
    json["source"]["options"] = Json::parse(r.provenance.options, nullptr, false);
  }
  json["engine"] = file.meta().engine;
  json["bytes"] = file.container().file_bytes();
  json["storage"] = storage_json(file);
  json["content_hash"] = file.container().content_hash().hex();
  json["identity"] = file.identity().hex();
  json["recordings"] = file.recordings();
  json["warnings"] = r.warnings;
  return json;
}

Json all_recordings_info(const std::string& path, std::size_t recordings) {
  Json all;
  for (std::size_t i = 0; i < recordings; ++i) {
    check_interrupt();
    const RecordingFile file = RecordingFile::open(path + "@" + std::to_string(i));
    const Recording& r = file.recording();
    const std::optional<std::uint64_t> instructions = completed_instructions(r);
    const auto add = [&](const char* key, std::optional<std::uint64_t> count) {
      Json& sum = all[key];
      if (i != 0 && (sum.is_null() || !count)) {
        sum = nullptr;
      } else if (count) {
        sum = (i == 0 ? 0 : sum.get<std::uint64_t>()) + *count;
      }
    };
    add("instructions", instructions);
    add("transactions", r.totals.transactions);
    add("reads", r.totals.reads);
    add("writes", r.totals.writes);
    add("line_fills", r.totals.line_fills);
    add("write_backs", r.totals.write_backs);
    add("instruction_starts", r.totals.instruction_starts);
    add("image_bytes", r.image.byte_count());
    add("interrupts", r.interrupts.size());
    add("io_reads", r.io_reads.size());
    add("io_writes", r.totals.io_writes);
    add("external_writes", r.external_writes.size());
    add("internal_reads", r.internal_reads.size());
  }
  return all;
}

}  // namespace citcat
