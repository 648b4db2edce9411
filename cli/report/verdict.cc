#include "cli/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/advice/line_advice.h"
#include "cli/divergence_report.h"
#include "events/capture_time.h"
#include "formats/io/error.h"
#include "replay/session/replayer.h"
#include "replay/verify/cache_check.h"

namespace citcat {

namespace {

nlohmann::ordered_json count_json(const CheckCount& count) {
  return {{"checked", count.checked}, {"equal", count.equal}};
}

nlohmann::ordered_json code_json(const std::optional<CodeComparison>& code) {
  if (!code) return nullptr;
  nlohmann::ordered_json doubts = nlohmann::ordered_json::array();
  for (const CodeDoubt& d : code->doubts) {
    doubts.push_back({{"linear", fmt::format("{:08x}", d.linear.value)},
                      {"executed", fmt::format("{:02x}", d.executed)},
                      {"known", fmt::format("{:02x}", d.known)},
                      {"file", d.file},
                      {"offset", d.offset}});
  }
  return {{"bytes", code->bytes},
          {"equal", code->equal},
          {"changed", code->changed},
          {"doubts", std::move(doubts)}};
}

/// Says with a divergence that an interrupt could not be placed, or not for certain: it comes of
/// that.
void add_placement_cause(const PlacedRecording& placed, ReplayReport& report) {
  const std::vector<PlacedEvent>& placements = placed.file.placements();
  const auto ambiguous =
      std::count_if(placements.begin(), placements.end(),
                    [](const PlacedEvent& e) { return e.placement == Placement::ambiguous; });
  if (report.divergence && ambiguous != 0) {
    report.divergence->causes.push_back(
        fmt::format("{} interrupts may belong at other places than those taken", ambiguous));
  }
  if (!report.divergence || !placed.search || !placed.search->divergence) return;
  const Divergence& d = *placed.search->divergence;
  std::string cause = fmt::format("an interrupt has no place: {}", d.reason);
  if (d.transaction != ~std::uint64_t{0}) cause += fmt::format(" (transaction {})", d.transaction);
  report.divergence->causes.push_back(std::move(cause));
}

/// What follows from the rest of the verdict and the recording.
void complete(Verdict& verdict, const RecordingFile& file) {
  verdict.placements = file.placements();
  verdict.clock_hz = clock_rate(file.recording().provenance);
  // Where one was shown the derivation has not counted the instruction that it ended.
  const std::optional<std::uint64_t>& counted = file.recording().instructions;
  verdict.shows_shutdown = verdict.shut_down && (counted ? *counted == verdict.report.instructions
                                                         : verdict.totals.specials.equal != 0);
  // True where the capture shows instruction starts or branch targets.
  verdict.hardware_stream =
      file.recording().totals.instruction_starts != 0 || verdict.totals.instructions.checked != 0;
  verdict.match =
      verdict.report.end == ReplayReport::End::complete && verdict.memory.different == 0;
}

}  // namespace

Verdict verdict_of(ReplaySession& session, const ReplayReport& report,
                   const PlacedRecording& placed, const MemoryImage* captured) {
  if (session.verifier() == nullptr) throw UsageError("the replay is not compared with evidence");
  Verdict verdict;
  verdict.report = report;
  verdict.memory = session.compare_final(captured);
  verdict.captured_memory = captured != nullptr;
  add_placement_cause(placed, verdict.report);
  if (verdict.report.divergence) {
    for (std::string& text : line_advice(placed.file))
      verdict.report.divergence->causes.push_back(std::move(text));
  }
  if (const CacheCheck* cache = session.cache()) {
    verdict.cache = CacheVerdict{cache->descriptor().name, cache->totals()};
  }
  verdict.totals = session.verifier()->totals();
  verdict.shut_down = session.machine().shut_down();
  verdict.model_specific_results = session.model_specific_results();
  verdict.first_model_specific = session.first_model_specific();
  complete(verdict, placed.file);
  return verdict;
}

Verdict verdict_of(const ComparedPart& whole, const PlacedRecording& placed, bool captured_memory) {
  Verdict verdict;
  verdict.report = whole.report;
  verdict.memory = whole.memory;
  verdict.captured_memory = captured_memory;
  verdict.totals = whole.totals;
  verdict.shut_down = whole.shut_down;
  verdict.model_specific_results = whole.model_specific_results;
  verdict.first_model_specific = whole.first_model_specific;
  complete(verdict, placed.file);
  return verdict;
}

nlohmann::ordered_json verdict_json(const Verdict& v) {
  nlohmann::ordered_json json;
  json["verdict"] = v.match ? "match" : "diverged";
  json["instructions"] = v.report.instructions;
  json["writes"] = count_json(v.totals.writes);
  json["write_backs"] = count_json(v.totals.write_backs);
  json["io_reads"] = count_json(v.totals.io_reads);
  json["io_writes"] = count_json(v.totals.io_writes);
  json["special_cycles"] = count_json(v.totals.specials);
  json["shutdown"] = nullptr;
  if (v.shut_down) json["shutdown"] = v.shows_shutdown ? "shown" : "not shown";
  json["interrupts"] = v.report.interrupts;
  json["exceptions"] = v.report.exceptions;
  json["external_writes"] = v.report.external_writes;
  json["instruction_stream"] = nullptr;
  if (v.hardware_stream) json["instruction_stream"] = count_json(v.totals.instructions);
  json["final_memory"] = {{"bytes", v.memory.bytes},
                          {"different", v.memory.different},
                          {"adopted", v.memory.adopted},
                          {"external_unseen", v.memory.external_unseen},
                          {"device", v.memory.device}};
  json["reads"] = v.totals.reads;
  json["single_bit_changes"] = v.totals.single_bit_changes;
  json["adopted"] = v.totals.adopted + v.memory.adopted;
  json["model_specific_results"] = v.model_specific_results;
  json["first_model_specific"] = nullptr;
  if (!v.first_model_specific.empty()) json["first_model_specific"] = v.first_model_specific;
  json["evidence_bytes"] = v.totals.evidence_bytes;
  json["placement"] = nullptr;
  if (!v.placements.empty()) json["placement"] = placements_json(v.placements);
  json["cache"] = cache_json(v.cache);
  json["code"] = code_json(v.code);
  json["accounting"] = accounting_json(v.accounting);
  json["divergence"] = divergence_json(v.report.divergence, v.clock_hz);
  return json;
}

}  // namespace citcat
