#include "cli/report/storage_account.h"

#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/trace_run.h"
#include "events/archive/chunk_table.h"
#include "events/archive/container.h"
#include "events/completed_instructions.h"
#include "formats/io/byte_sink.h"
#include "formats/io/zstd_sink.h"
#include "formats/kt/kt.h"
#include "replay/trace/kt_sink.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

/// A line of the account: the chunks that serve one purpose.
struct Stream {
  const char* name;
  ChunkPurpose purpose;
  bool needed;  ///< to replay
};
constexpr std::array kStreams{
    Stream{"state", ChunkPurpose::state, true},
    Stream{"image", ChunkPurpose::image, true},
    Stream{"events", ChunkPurpose::events, true},
    Stream{"digests", ChunkPurpose::digests, true},
    Stream{"evidence", ChunkPurpose::evidence, false},
    Stream{"symbols", ChunkPurpose::symbols, false},
    Stream{"checkpoints", ChunkPurpose::checkpoints, false},
};

bool has_kind(const Stream& stream, ChunkKind kind) {
  const ChunkRow* const row = find_chunk_row(kind);
  return row != nullptr && row->purpose == stream.purpose;
}

/// Stored bytes of the archive's chunks, by kind.
std::map<ChunkKind, std::uint64_t> bytes_by_kind(const RecordingFile& file) {
  std::map<ChunkKind, std::uint64_t> bytes;
  for (const ChunkInfo& chunk : file.container().chunks()) bytes[chunk.kind] += chunk.stored_bytes;
  return bytes;
}

double bits_each(std::uint64_t bytes, std::uint64_t instructions) {
  return instructions == 0 ? 0
                           : 8.0 * static_cast<double>(bytes) / static_cast<double>(instructions);
}

double ratio(std::uint64_t larger, std::uint64_t smaller) {
  return smaller == 0 ? 0 : static_cast<double>(larger) / static_cast<double>(smaller);
}

/// Instructions of the run, 0 when that is not known before a replay.
std::uint64_t known_instructions(const RecordingFile& file) {
  if (const auto known = completed_instructions(file.recording())) return *known;
  return file.digests().empty() ? 0 : file.digests().back().instruction;
}

/// Bytes of what replays the run: all but evidence, checkpoints and what belongs to them.
std::uint64_t needed_bytes(const RecordingFile& file) {
  std::uint64_t sum = 0;
  for (const auto& [kind, bytes] : bytes_by_kind(file)) {
    for (const Stream& stream : kStreams) {
      if (stream.needed && has_kind(stream, kind)) sum += bytes;
    }
  }
  return sum;
}

/// Compresses on the way to nowhere and counts.
struct CountedZstd {
  CountedZstd() : counter(new NullSink), sink(std::unique_ptr<ByteSink>(counter), 3, 1) {}
  NullSink* counter;  ///< the sink's
  ZstdSink sink;
};

}  // namespace

Json storage_json(const RecordingFile& file) {
  const std::map<ChunkKind, std::uint64_t> by_kind = bytes_by_kind(file);
  const std::uint64_t instructions = known_instructions(file);
  const std::uint64_t all = file.container().file_bytes();
  Json json;
  std::uint64_t listed = 0;
  for (const Stream& stream : kStreams) {
    std::uint64_t sum = 0;
    for (const auto& [kind, bytes] : by_kind) sum += has_kind(stream, kind) ? bytes : 0;
    json[stream.name] = sum;
    listed += sum;
  }
  json["container"] = all - listed;
  json["needed_to_replay"] = needed_bytes(file);
  if (instructions == 0) return json;
  json["bits_per_instruction"] = bits_each(all, instructions);
  json["bits_per_instruction_needed"] = bits_each(needed_bytes(file), instructions);
  const std::uint64_t events = json["events"].get<std::uint64_t>();
  json["event_bytes_per_1000_instructions"] = 125.0 * bits_each(events, instructions);
  return json;
}

Json trace_json(const RecordingFile& file, const Console& console) {
  CountedZstd zstd;
  KtWriter writer(zstd.sink, kt_form(file.recording().initial.model));
  KtSink trace(writer, KtOptions{});
  TraceRunOptions options;
  options.use_checkpoints = false;
  const TraceRunResult result = run_trace(file, &trace, options, console);
  writer.flush();
  zstd.sink.finish();
  result.warn(console);
  const std::uint64_t all = file.container().file_bytes();
  const std::uint64_t needed = needed_bytes(file);
  Json json;
  json["end"] = replay_end_name(result.report.end);
  json["instructions"] = result.report.instructions;
  json["records"] = writer.instructions();
  json["kt_bytes"] = writer.size();
  json["zstd_bytes"] = zstd.counter->size();
  json["kt_to_archive"] = ratio(writer.size(), all);
  json["kt_to_needed"] = ratio(writer.size(), needed);
  json["zstd_to_archive"] = ratio(zstd.counter->size(), all);
  json["zstd_to_needed"] = ratio(zstd.counter->size(), needed);
  return json;
}

}  // namespace citcat
