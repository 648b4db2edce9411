#include "cli/cache_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/io/error.h"

namespace citcat {
namespace {

nlohmann::ordered_json count_json(const CacheCount& count) {
  return {{"predicted", count.predicted}, {"captured", count.captured}, {"agree", count.agree}};
}

std::string count_text(const char* what, const CacheCount& count) {
  return fmt::format("  {:<18} {} predicted, {} captured, {} agree", what, count.predicted,
                     count.captured, count.agree);
}

void add(CacheCount& all, const CacheCount& one) {
  all.predicted += one.predicted;
  all.captured += one.captured;
  all.agree += one.agree;
}

}  // namespace

std::vector<std::string> cache_names() {
  std::vector<std::string> names;
  for (const CacheDescriptor& c : known_caches()) names.emplace_back(c.name);
  return names;
}

const CacheDescriptor* choose_cache(const BusModel& bus, const std::string& name) {
  if (name.empty()) return declared_cache(bus);
  if (const CacheDescriptor* cache = find_cache(name)) return cache;
  throw UsageError(
      fmt::format("--cache-model: expected {}, found {}", fmt::join(cache_names(), ", "), name));
}

nlohmann::ordered_json cache_json(const std::optional<CacheVerdict>& verdict) {
  if (!verdict) return nullptr;
  nlohmann::ordered_json json;
  json["model"] = verdict->model;
  json["fills"] = count_json(verdict->totals.fills);
  json["write_backs"] = count_json(verdict->totals.write_backs);
  json["refills"] = verdict->totals.refills;
  json["first_disagreement"] = nullptr;
  if (const auto& first = verdict->totals.first) {
    nlohmann::ordered_json& d = json["first_disagreement"];
    d["position"] = first->position.instruction;
    d["transaction"] = nullptr;
    if (first->transaction != kNoTransaction) d["transaction"] = first->transaction;
    d["address"] = fmt::format("{:08x}", first->traffic.line.value);
    d["what"] = cache_traffic_name(first->traffic.kind);
    d["captured"] = first->captured;
  }
  return json;
}

std::vector<std::string> cache_lines(const CacheVerdict& verdict) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("  {:<18} {}", "cache", verdict.model));
  lines.push_back(count_text("line fills", verdict.totals.fills));
  lines.push_back(count_text("write-backs", verdict.totals.write_backs));
  if (const auto& first = verdict.totals.first) {
    std::string at = fmt::format("  {:<18} at instruction {}", "", first->position.instruction);
    if (first->transaction != kNoTransaction) {
      at += fmt::format(", transaction {}", first->transaction);
    }
    lines.push_back(fmt::format("{}: {}", at, cache_disagreement_text(*first)));
  }
  return lines;
}

std::optional<Divergence> cache_divergence(const CacheVerdict& verdict) {
  const auto& first = verdict.totals.first;
  if (!first) return std::nullopt;
  Divergence d;
  d.position = first->position;
  d.transaction = first->transaction;
  d.reason = "the processor's cache does not do what its model does";
  const std::string line = fmt::format("{} of line {:08x}", cache_traffic_name(first->traffic.kind),
                                       first->traffic.line.value);
  d.expected = first->captured ? line : "nothing";
  d.found = first->captured ? "nothing" : line;
  return d;
}

void add_to(std::optional<CacheVerdict>& all, const std::optional<CacheVerdict>& one) {
  if (!one) return;
  if (!all) {
    all = one;
    return;
  }
  add(all->totals.fills, one->totals.fills);
  add(all->totals.write_backs, one->totals.write_backs);
  all->totals.refills += one->totals.refills;
  if (!all->totals.first) all->totals.first = one->totals.first;
}

}  // namespace citcat
