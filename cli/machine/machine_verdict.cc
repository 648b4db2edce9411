#include "cli/machine/machine_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "formats/io/json_text.h"
#include "replay/processors/unshown_commands.h"
#include "replay/processors/unshown_stores.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

Json contradiction_json(const std::optional<BusContradiction>& first) {
  if (!first) return nullptr;
  Json json;
  json["processor"] = first->processor;
  json["transaction"] = nullptr;
  if (first->t.index != kNoTransaction) json["transaction"] = first->t.index;
  json["instruction"] = nullptr;
  if (first->t.has(kPositionKnown)) json["instruction"] = first->t.position.instruction;
  json["clock"] = first->t.clock;
  json["address"] = first->t.address.low32();
  json["reason"] = first->reason;
  json["expected"] = first->expected;
  json["found"] = first->found;
  return json;
}

Json bus_json(const CrossCheckResult& bus) {
  return {{"verdict", bus.clean() ? "match" : "diverged"},
          {"transactions", bus.transactions},
          {"reads", bus.reads},
          {"from_processors", bus.from_others},
          {"from_devices", bus.from_devices},
          {"from_nobody", bus.unexplained},
          {"invalidations", bus.invalidations},
          {"contradictions", bus.contradictions},
          {"first", contradiction_json(bus.first)}};
}

/// Calls `take` with each known byte.
template <typename Take>
void for_bytes(const MemoryImage& image, Take take) {
  for (const auto& [number, page] : image.pages()) {
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      if (page->valid[i]) take(PhysAddr{number * kPageSize + i}, page->data[i]);
    }
  }
}

std::uint64_t instructions_of(const MachineVerdict& verdict) {
  return std::accumulate(
      verdict.processors.begin(), verdict.processors.end(), std::uint64_t{0},
      [](std::uint64_t sum, const ProcessorVerdict& p) { return sum + p.instructions; });
}

void print_bus(const CrossCheckResult& bus, const Console& console) {
  console.print(fmt::format("  {:<18} {} reads of memory compared with what was written last\n",
                            "shared bus", bus.reads));
  console.print(fmt::format("  {:<18} {} by other processors, {} by devices, {} by nobody\n",
                            "memory changed", bus.from_others, bus.from_devices, bus.unexplained));
  if (!bus.first) return;
  const BusContradiction& first = *bus.first;
  console.print(fmt::format("  {:<18} {}, the first by processor {} at clock {}", "contradictions",
                            bus.contradictions, first.processor, first.t.clock));
  if (first.t.index != kNoTransaction)
    console.print(fmt::format(", transaction {}", first.t.index));
  if (first.t.has(kPositionKnown))
    console.print(fmt::format(", instruction {}", first.t.position.instruction));
  console.print("\n  " + first.reason + "\n");
  if (!first.expected.empty()) console.print("    expected " + first.expected + "\n");
  console.print("    found    " + first.found + "\n");
}

}  // namespace

bool MachineVerdict::match() const {
  return bus.clean() && (!memory || memory->different == 0) &&
         std::all_of(processors.begin(), processors.end(),
                     [](const ProcessorVerdict& p) { return p.match; });
}

std::string to_text(const ProcessorVerdict& verdict) {
  Json json;
  json["match"] = verdict.match;
  json["instructions"] = verdict.instructions;
  json["json"] = verdict.json;
  json["divergence"] = verdict.divergence;
  json["remarks"] = verdict.remarks;
  json["memory"] = {verdict.memory.bytes, verdict.memory.different};
  json["changed"] = Json::array();
  for (const PhysAddr line : verdict.changed_lines) json["changed"].push_back(line.value);
  return json_text(json);
}

ProcessorVerdict processor_verdict_of(const std::string& text) {
  const Json json = Json::parse(text);
  ProcessorVerdict verdict;
  verdict.match = json.at("match").get<bool>();
  verdict.instructions = json.at("instructions").get<std::uint64_t>();
  verdict.json = json.at("json");
  verdict.divergence = json.at("divergence").get<std::vector<std::string>>();
  verdict.remarks = json.at("remarks").get<std::string>();
  verdict.memory.bytes = json.at("memory").at(0).get<std::uint64_t>();
  verdict.memory.different = json.at("memory").at(1).get<std::uint64_t>();
  for (const Json& line : json.at("changed"))
    verdict.changed_lines.push_back(PhysAddr{line.get<std::uint64_t>()});
  return verdict;
}

CrossCheckResult cross_check(const MachineFile& machine, const std::vector<RecordingFile>& files,
                             CrossCheck& check) {
  SharedBus bus = shared_bus_of(machine, files);
  return check_shared_bus(bus, check);
}

void check_stores(const MachineFile& machine, const CrossCheck& check,
                  const ComparisonPolicy& policy, MachineVerdict& verdict) {
  for (std::size_t p = 0; p < verdict.processors.size(); ++p) {
    const ProcessorVerdict& its = verdict.processors[p];
    if (!its.match) continue;
    check_changed_lines(machine, check, p, its.changed_lines, policy, verdict.bus);
    check_unasked_message(machine, check, p, policy, verdict.bus);
  }
}

MemoryImage owned_part(const MemoryImage& captured, const CrossCheck& check,
                       std::size_t processor) {
  MemoryImage part;
  for_bytes(captured, [&](PhysAddr a, std::uint8_t byte) {
    if (check.owner(a) == processor) part.set(a, byte);
  });
  return part;
}

MachineMemory compare_memory(const MemoryImage& captured, const CrossCheck& check,
                             const std::vector<ProcessorVerdict>& processors) {
  MachineMemory memory;
  for_bytes(captured, [&](PhysAddr a, std::uint8_t byte) {
    const std::optional<std::uint8_t> now = check.byte(a);
    if (!now || check.owner(a)) return;
    ++memory.bytes;
    if (*now != byte && memory.different++ == 0) memory.first = a;
  });
  for (const ProcessorVerdict& its : processors) {
    memory.bytes += its.memory.bytes;
    memory.different += its.memory.different;
  }
  return memory;
}

Json machine_verdict_json(const MachineVerdict& verdict) {
  Json json;
  json["verdict"] = verdict.match() ? "match" : "diverged";
  json["instructions"] = instructions_of(verdict);
  json["processors"] = Json::array();
  for (std::size_t i = 0; i < verdict.processors.size(); ++i) {
    Json its;
    its["processor"] = i;
    its.update(verdict.processors[i].json);
    json["processors"].push_back(std::move(its));
  }
  json["shared_bus"] = nullptr;
  if (!verdict.has_digests) json["shared_bus"] = bus_json(verdict.bus);
  json["final_memory"] = nullptr;
  if (verdict.memory) {
    json["final_memory"] = {{"bytes", verdict.memory->bytes},
                            {"different", verdict.memory->different}};
  }
  return json;
}

void print_machine_verdict(const MachineVerdict& verdict, const Console& console) {
  console.print_verdict(verdict.match(), verdict.match() ? "match" : "diverged",
                        fmt::format(": {} instructions of {} processors", instructions_of(verdict),
                                    verdict.processors.size()));
  for (std::size_t i = 0; i < verdict.processors.size(); ++i) {
    const ProcessorVerdict& its = verdict.processors[i];
    console.print(fmt::format("  processor {:<8} {}: {} instructions\n", i,
                              its.match ? "match" : "diverged", its.instructions));
    console.print(its.remarks);
    for (const std::string& line : its.divergence) console.print("    " + line + "\n");
  }
  if (verdict.has_digests) {
    console.print(fmt::format("  {:<18} not compared: the recording has digests in place of it\n",
                              "shared bus"));
  } else {
    print_bus(verdict.bus, console);
  }
  if (!verdict.memory) return;
  console.print(fmt::format("  {:<18} {} bytes, {} different\n", "final memory",
                            verdict.memory->bytes, verdict.memory->different));
  if (verdict.memory->first)
    console.print(fmt::format("    the first at {:08x}\n", verdict.memory->first->low32()));
}

}  // namespace citcat
