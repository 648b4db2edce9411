#include "cli/replay_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace citcat {

namespace {

/// Instructions that ran in blocks: all but those that were made one by one.
std::uint64_t in_blocks(const ReplayStats& stats) {
  const std::uint64_t replayed = stats.report.instructions - stats.started_at;
  return replayed - std::min(replayed, stats.machine.alone);
}

}  // namespace

nlohmann::ordered_json stats_json(const ReplayStats& stats) {
  const MachineStats& m = stats.machine;
  const ReplayReport& r = stats.report;
  nlohmann::ordered_json json;
  json["instructions"] = {{"in_blocks", in_blocks(stats)},
                          {"alone", m.alone},
                          {"emulated", m.emulated},
                          {"string_iterations", m.string_iterations}};
  json["blocks"] = {{"translated", m.translations},       {"made", m.blocks},
                    {"dropped", m.blocks_dropped},        {"rolled_back", m.rolled_back},
                    {"code_forgotten", m.code_forgotten}, {"engine_runs", m.engine_runs}};
  json["decoded"] = m.decoded;
  json["tlb"] = {
      {"walks", m.page_walks}, {"quiet_walks", m.quiet_walks}, {"flushes", m.tlb_flushes}};
  json["events"] = {{"interrupts", r.interrupts},
                    {"exceptions", r.exceptions},
                    {"io_reads", r.io_reads},
                    {"io_writes", r.io_writes},
                    {"external_writes", r.external_writes}};
  json["seconds"] = {{"open", stats.open_seconds}, {"replay", stats.replay_seconds}};
  return json;
}

std::vector<std::string> stats_lines(const ReplayStats& stats) {
  const MachineStats& m = stats.machine;
  const ReplayReport& r = stats.report;
  return {
      fmt::format("instructions: {} in blocks, {} alone, {} emulated; {} iterations of REP in runs",
                  in_blocks(stats), m.alone, m.emulated, m.string_iterations),
      fmt::format("blocks: {} made, {} dropped, {} rolled back; {} translated by the engine, code "
                  "forgotten {} times, "
                  "engine entered {} times",
                  m.blocks, m.blocks_dropped, m.rolled_back, m.translations, m.code_forgotten,
                  m.engine_runs),
      fmt::format("decoded: {} instructions", m.decoded),
      fmt::format("TLB: {} walks, {} of them quiet, {} flushes", m.page_walks, m.quiet_walks,
                  m.tlb_flushes),
      fmt::format("events: {} interrupts, {} exceptions, {} port reads, {} port writes, {} "
                  "external writes",
                  r.interrupts, r.exceptions, r.io_reads, r.io_writes, r.external_writes),
      fmt::format("time: {:.2f} s to open, {:.2f} s to replay", stats.open_seconds,
                  stats.replay_seconds),
  };
}

}  // namespace citcat
