#include "cli/idtrace/idtrace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/file_kind.h"
#include "formats/idtrace/count_file.h"
#include "formats/idtrace/idtrace_reader.h"
#include "formats/io/error.h"
#include "tools/idtrace/totals.h"
#include "tools/idtrace/trace_output.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;
using tools::IdtraceTotals;

Json magic_json(const IdtraceMagic& magic) {
  return {{"original", fmt::format("{:08x}", magic.original)},
          {"traced", fmt::format("{:08x}", magic.traced)}};
}

/// Most frequent first; of equals the first by name.
Json mix_json(const IdtraceTotals& totals) {
  std::vector<std::pair<std::string, std::uint64_t>> mix(totals.mix.begin(), totals.mix.end());
  std::stable_sort(mix.begin(), mix.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Json json = Json::array();
  for (const auto& [mnemonic, count] : mix) {
    json.push_back({{"mnemonic", mnemonic}, {"count", count}});
  }
  return json;
}

std::uint64_t weight(const IdtraceTotals::Block& block) {
  return block.executions * block.instructions;
}

/// Blocks, those that make nine tenths of the instructions, and the `top` of them.
Json blocks_json(const IdtraceTotals& totals, std::size_t top) {
  std::vector<IdtraceTotals::Block> blocks = totals.blocks;
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const auto& a, const auto& b) { return weight(a) > weight(b); });
  std::uint64_t executed = 0, different = 0, for_90_percent = 0, so_far = 0;
  Json listed = Json::array();
  for (const IdtraceTotals::Block& block : blocks) {
    executed += block.executions;
    if (block.executions != 0) ++different;
    if (so_far * 10 < totals.executions * 9) ++for_90_percent;
    so_far += weight(block);
    if (listed.size() == top || block.executions == 0) continue;
    listed.push_back({{"address", fmt::format("{:08x}", block.linear.u32())},
                      {"instructions", block.instructions},
                      {"executions", block.executions}});
  }
  return {{"in_file", blocks.size()},
          {"static", different},
          {"executed", executed},
          {"for_90_percent", for_90_percent},
          {"hottest", listed}};
}

/// Each key is what it is of the tool `count`. The files do not say that a REP was interrupted:
/// as many instructions as executions.
Json totals_json(const IdtraceTotals& totals, std::size_t top) {
  Json json;
  json["instructions"] = totals.executions;
  json["executions"] = totals.executions;
  json["iterations"] = nullptr;
  if (totals.iterations) json["iterations"] = *totals.iterations;
  json["mix"] = mix_json(totals);
  json["blocks"] = blocks_json(totals, top);
  return json;
}

Json entries_json(IdtraceReader& trace) {
  const auto totals = tools::IdtraceEntryTotals::of(trace);
  Json json;
  json["trace"] = idtrace_kind_name(trace.kind());
  json["entries"] = totals.entries;
  json["by_tag"] = Json::object();
  for (unsigned high = 0; high < totals.by_tag.size(); ++high) {
    const auto tag = static_cast<IdtraceTag>(high << 4);
    const std::uint64_t count = totals.of(tag);
    if (count == 0) continue;
    const std::string name(idtrace_tag_name(tag));
    if (!is_idtrace_reference(tag)) {
      json["by_tag"][name] = count + json["by_tag"].value(name, std::uint64_t{0});
      continue;
    }
    json["by_tag"][name] = count;
    for (std::uint8_t code = 1; code <= kIdtraceMaxSizeCode; ++code) {
      const std::uint64_t of_size = totals.by_tag[high][code];
      if (of_size != 0) {
        json["by_size"][fmt::format("{} {}", name, idtrace_size_bytes(code))] = of_size;
      }
    }
  }
  if (trace.kind() == IdtraceKind::branch) {
    json["taken"] = totals.taken;
    json["not_taken"] = totals.not_taken;
  }
  return json;
}

IdtraceCounts load_counts(const std::string& path, const IdtraceProgram& program) {
  IdtraceCounts counts = IdtraceCounts::load(path, program.blocks->size());
  counts.require(*program.blocks, path);
  return counts;
}

}  // namespace

Json idtrace_count_json(const std::string& path, const IdtraceArguments& files, std::size_t top) {
  const FileKind kind = find_file_kind(path).kind;
  if (kind == FileKind::idtrace_counts) {
    const IdtraceProgram program = files.load(path, false);
    const IdtraceCounts counts = load_counts(path, program);
    const IdtraceCode* const code = program.code ? &*program.code : nullptr;
    return totals_json(IdtraceTotals::of(*program.blocks, counts, code), top);
  }
  if (kind != FileKind::idtrace_trace) {
    throw FormatError(path, 0,
                      "expected an IDtrace profile (.cnt) or trace (.trc), found " +
                          std::string(file_kind_name(kind)));
  }
  if (idtrace_kind_of(read_head(path, 1).at(0)) != IdtraceKind::execution) {
    IdtraceReader trace(path);
    return entries_json(trace);
  }
  const IdtraceProgram program = files.load(path, true);
  IdtraceReader trace(path);
  return totals_json(IdtraceTotals::of(trace, *program.blocks, *program.code), top);
}

Json idtrace_repeats_json(const std::string& path, const IdtraceArguments& files) {
  tools::IdtraceRepeats repeats;
  if (find_file_kind(path).kind == FileKind::idtrace_trace &&
      idtrace_kind_of(read_head(path, 1).at(0)) == IdtraceKind::execution) {
    const IdtraceProgram program = files.load(path, true);
    IdtraceReader trace(path);
    repeats = tools::IdtraceRepeats::of(trace, *program.blocks, *program.code);
  } else {
    IdtraceReader trace(path);
    repeats = tools::IdtraceRepeats::of(trace);
  }
  Json json = Json::array();
  for (const auto& [name, row] : repeats.rows) {
    json.push_back({{"instruction", name},
                    {"begun", row.begun},
                    {"iterations", row.iterations},
                    {"longest", row.longest},
                    {"nothing_done", row.nothing_done},
                    {"by_length", row.by_length}});
  }
  return {{"repeats", json}};
}

Json idtrace_trace_info(const std::string& path) {
  IdtraceReader trace(path);
  Json json = entries_json(trace);
  json["bytes"] = trace.offset();
  return json;
}

Json idtrace_blocks_info(const std::string& path) {
  const IdtraceBlocks blocks = IdtraceBlocks::load(path);
  std::uint64_t instructions = 0, bytes = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    instructions += blocks[i].instructions.size();
    bytes += blocks[i].code_bytes();
  }
  Json json;
  json["blocks"] = blocks.size();
  json["instructions"] = instructions;
  json["code_bytes"] = bytes;
  json["oldt_offset"] = fmt::format("{:08x}", blocks.text_offset());
  json["magic"] = magic_json(blocks.magic());
  return json;
}

Json idtrace_counts_info(const std::string& path) {
  const IdtraceProgram program = IdtraceArguments().load(path, false);
  const IdtraceCounts counts = load_counts(path, program);
  std::uint64_t executions = 0;
  for (const std::uint64_t count : counts.executions) executions += count;
  Json json;
  json["blocks"] = counts.executions.size();
  json["sets"] = counts.sets;
  json["executions"] = executions;
  json["magic"] = magic_json(counts.magic);
  return json;
}

}  // namespace citcat
