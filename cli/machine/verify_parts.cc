#include "cli/machine/verify_parts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/machine/processes.h"
#include "formats/io/log.h"

namespace citcat {
namespace {

using nlohmann::json;

const Logger parts_log("session");

// Numbers of a part, in an order of their own: what one process tells another.
template <class Part, class F>
void for_each_number(Part& part, F&& number) {
  auto& t = part.totals;
  for (auto* const count :
       {&t.writes, &t.write_backs, &t.io_reads, &t.io_writes, &t.specials, &t.instructions}) {
    number(count->checked);
    number(count->equal);
  }
  auto& r = part.report;
  auto& m = part.memory;
  for (auto* const n : {&part.begin.low,
                        &part.begin.high,
                        &part.end.low,
                        &part.end.high,
                        &t.reads,
                        &t.adopted,
                        &t.single_bit_changes,
                        &t.first_single_bit_change,
                        &t.evidence_bytes,
                        &r.instructions,
                        &r.interrupts,
                        &r.exceptions,
                        &r.io_reads,
                        &r.io_writes,
                        &r.external_writes,
                        &m.bytes,
                        &m.adopted,
                        &m.external_unseen,
                        &m.device,
                        &part.model_specific_results}) {
    number(*n);
  }
}

std::string text_of(const std::optional<ComparedPart>& part) {
  if (!part) return "";
  json numbers = json::array();
  for_each_number(*part, [&](std::uint64_t n) { numbers.push_back(n); });
  return json{numbers, part->report.end, part->shut_down, part->first_model_specific, part->orders}
      .dump();
}

ComparedPart part_of(const std::string& text) {
  const json told = json::parse(text);
  ComparedPart part;
  std::size_t next = 0;
  for_each_number(part, [&](std::uint64_t& n) { n = told[0][next++]; });
  part.report.end = told[1];
  part.shut_down = told[2];
  part.first_model_specific = told[3];
  part.orders = told[4].get<std::map<std::uint64_t, std::uint64_t>>();
  return part;
}

}  // namespace

std::optional<Verdict> verify_in_parts(const PlacedRecording& placed, const MemoryImage* captured,
                                       const ComparisonPolicy& policy, unsigned jobs) {
  const Checkpoints checkpoints(placed.file);
  const std::vector<PartOfRun> parts = parts_to_compare(placed.file, checkpoints, policy, jobs);
  if (parts.size() < 2) return std::nullopt;
  const std::vector<std::string> texts = run_side_by_side(parts.size(), jobs, [&](std::size_t i) {
    return text_of(compare_part(placed.file, checkpoints, parts[i], policy, captured));
  });
  std::vector<ComparedPart> compared;
  for (const std::string& text : texts) {
    if (!text.empty()) compared.push_back(part_of(text));
  }
  std::optional<ComparedPart> whole;
  if (compared.size() == parts.size()) whole = join_parts(compared);
  if (!whole) {
    if (parts_log.at(LogLevel::info))
      parts_log.write(
          "not all parts agree when each is compared alone: the whole run is compared instead");
    return std::nullopt;
  }
  return verdict_of(*whole, placed, captured != nullptr);
}

}  // namespace citcat
