#include "cli/shares/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "events/archive/container.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/json_text.h"

namespace citcat {
namespace {

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : number(value);
}

/// Variables by which batch systems tell a task which one it is: the task's, the first task's and
/// the last task's number (manuals of Slurm's sbatch and Grid Engine's qsub).
struct TaskVariables {
  const char *own, *first, *last;
};
constexpr std::array<TaskVariables, 2> kArrays = {{
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX"},
    {"SGE_TASK_ID", "SGE_TASK_FIRST", "SGE_TASK_LAST"},
}};

Shard checked(std::uint32_t own, std::uint32_t count, const std::string& from) {
  if (count == 0 || own == 0 || own > count) {
    throw UsageError(fmt::format("--shard: expected K/N with K from 1 to N, found {}/{}{}", own,
                                 count, from.empty() ? "" : " by " + from));
  }
  return {own, count};
}

Shard automatic_shard() {
  for (const TaskVariables& v : kArrays) {
    const auto own = variable(v.own), first = variable(v.first), last = variable(v.last);
    if (own && first && last && *own >= *first) {
      return checked(*own - *first + 1, *last - *first + 1, v.own);
    }
  }
  const auto rank = variable("SLURM_PROCID"), ranks = variable("SLURM_NTASKS");
  if (rank && ranks) return checked(*rank + 1, *ranks, "SLURM_PROCID");
  throw UsageError("--shard auto: expected a variable such as SLURM_ARRAY_TASK_ID, found none");
}

/// What the name of a share has before its extension.
std::string shard_mark(Shard shard) {
  return fmt::format(".{:04}-of-{:04}", shard.number, shard.count);
}

}  // namespace

Shard parse_shard(const std::string& text) {
  if (text == "auto") return automatic_shard();
  const std::size_t slash = text.find('/');
  const auto own = number(text.substr(0, slash));
  const auto count = slash == std::string::npos ? std::nullopt : number(text.substr(slash + 1));
  if (!own || !count) throw UsageError("--shard: expected K/N or auto, found " + text);
  return checked(*own, *count, "");
}

std::string shard_path(const std::string& output, Shard shard) {
  const std::size_t folder = output.find_last_of('/');
  std::size_t at = output.find(".kt", folder == std::string::npos ? 0 : folder);
  if (at == std::string::npos) at = output.size();
  return output.substr(0, at) + shard_mark(shard) + output.substr(at);
}

std::string sibling_shard_path(const std::string& path, Shard shard, std::uint32_t number) {
  const std::string mark = shard_mark(shard);
  const std::size_t at = path.rfind(mark);
  if (at == std::string::npos) return fmt::format("share {}", number);
  std::string sibling = path;
  return sibling.replace(at, mark.size(), shard_mark({number, shard.count}));
}

ReplayRange shard_range(const RecordingFile& file, const ReplayRange& whole, Shard shard) {
  std::uint64_t end = file.recording().instructions.value_or(0);
  if (end == 0) {
    for (const CheckpointSeries& s : CheckpointSeries::read(file)) {
      end = std::max(end, s.run().end.instruction);
    }
  }
  end = std::min(end, whole.to);
  if (end != 0 && end <= whole.from && whole.from < whole.to) {
    throw UsageError(fmt::format("--from {}: {} ends after {} instructions", whole.from,
                                 file.container().path(), end));
  }
  if (end <= whole.from) {
    throw UsageError(file.container().path() +
                     ": the length of the run must be known before it can be divided into shares "
                     "(citcat checkpoint finds it)");
  }
  const std::uint64_t share = (end - whole.from) / shard.count;
  ReplayRange range;
  range.from = whole.from + share * (shard.number - 1);
  // The last one takes what is over, and whatever follows the last count.
  range.to = shard.number == shard.count ? whole.to : range.from + share;
  return range;
}

void write_description(const std::string& path, const ShardDescription& d) {
  nlohmann::ordered_json json;
  json["citcat_shard"] = 1;
  json["shard"] = d.shard.number;
  json["of"] = d.shard.count;
  json["whole"] = {d.whole.from, d.whole.to};
  json["range"] = {d.range.from, d.range.to};
  json["recording"] = d.recording;
  json["options"] = d.options;
  json["bytes"] = d.bytes;
  json["xxh3"] = d.xxh3;
  const std::string text = json_text(json, 1) + "\n";
  AtomicFile file(path);
  file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  file.commit();
}

ShardDescription read_description(const std::string& path) {
  InputStream in(path);
  std::string text;
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) {
    constexpr std::size_t kMax = 1 << 16;
    if (text.size() + block.size() > kMax) break;
    text.append(reinterpret_cast<const char*>(block.data()), block.size());
  }
  try {
    const auto json = nlohmann::ordered_json::parse(text);
    if (json.at("citcat_shard") != 1) throw FormatError(path, 0, "expected version 1 of a shard");
    ShardDescription d;
    d.shard = {json.at("shard"), json.at("of")};
    d.whole = {json.at("whole").at(0), json.at("whole").at(1)};
    d.range = {json.at("range").at(0), json.at("range").at(1)};
    d.recording = json.at("recording");
    d.options = json.at("options");
    d.bytes = json.at("bytes");
    d.xxh3 = json.at("xxh3");
    return d;
  } catch (const nlohmann::ordered_json::exception& e) {
    throw FormatError(path, 0,
                      std::string("expected the description of a shard, found ") + e.what());
  }
}

}  // namespace citcat
