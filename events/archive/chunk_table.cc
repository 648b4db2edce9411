#include "events/archive/chunk_table.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "events/adoption.h"
#include "events/archive/container.h"
#include "events/archive/event_codec.h"
#include "events/archive/machine_codec.h"
#include "events/archive/recording_codec.h"
#include "events/archive/symbol_codec.h"
#include "formats/io/byte_writer.h"

namespace citcat {
namespace {

void take_meta(ByteReader& in, RecordingParts& parts) {
  if (parts.has_meta) in.fail("expected one META chunk for a recording, found another");
  decode_meta(in, parts.recording, parts.meta);
  parts.has_meta = true;
}

void take_cpu(ByteReader& in, RecordingParts& parts) {
  parts.recording.initial = decode_cpu(in);
  parts.has_cpu = true;
}

constexpr ChunkKind kStopChunk = chunk_kind("STOP"), kAdoptionChunk = chunk_kind("ADPT");

void put_stop(const Recording& recording, ByteWriter& out) {
  if (!recording.end) return;
  out.varint(recording.end->instruction);
  out.varint(recording.end->iteration);
}

void take_stop(ByteReader& in, RecordingParts& parts) {
  Position end;
  end.instruction = in.varint("last instruction");
  end.iteration = static_cast<std::uint32_t>(in.count("last iteration", ~std::uint32_t{0}));
  in.expect_end("the stop chunk");
  parts.recording.end = end;
}

void put_adoptions(const Recording& recording, ByteWriter& out) {
  if (!recording.adoptions.empty()) write_adoptions(out, recording.adoptions);
}

void take_adoptions(ByteReader& in, RecordingParts& parts) {
  parts.recording.adoptions = read_adoptions(in);
  in.expect_end("the adoptions chunk");
}

void take_hints(ByteReader& in, RecordingParts& parts) {
  const std::span<const std::uint8_t> text = in.bytes(in.remaining(), "hints");
  HintFile file = parse_hints(std::string(text.begin(), text.end()), in.name() + " (HINT)");
  for (Hint& hint : file.hints) parts.hints.push_back(std::move(hint));
}

void take_lost(ByteReader& in, RecordingParts& parts) {
  parts.lost.push_back("part of this recording was lost before it was repaired: " +
                       decode_lost_chunk(in).message);
}

constexpr auto kRows = [] {
  using enum ChunkPurpose;
  using enum ChunkIdentity;
  using Parts = RecordingParts;
  using In = ByteReader;
  return std::to_array<ChunkRow>({
      {kMetaChunk, state, apart, take_meta},
      {kCpuChunk, state, part, take_cpu},
      {kImageChunk, image, part, [](In& in, Parts& to) { decode_image(in, to.recording.image); },
       sizeof(MemoryImage::Page), 2},
      {kInterruptChunk, events, part,
       [](In& in, Parts& to) { decode_interrupts(in, to.recording.interrupts); }, sizeof(Interrupt),
       10},
      {kExternalWriteChunk, events, part,
       [](In& in, Parts& to) { decode_external_writes(in, to.recording.external_writes); },
       sizeof(ExternalWrite), 14, true},
      {kIoReadChunk, events, part,
       [](In& in, Parts& to) { decode_io_reads(in, to.recording.io_reads); }, sizeof(IoRead), 7,
       true},
      {kInternalReadChunk, events, part,
       [](In& in, Parts& to) { decode_internal_reads(in, to.recording.internal_reads); },
       sizeof(InternalRead), 8, true},
      {kEvidenceChunk, evidence, part, nullptr},
      {kDigestChunk, digests, apart, [](In& in, Parts& to) { decode_digests(in, to.digests); },
       sizeof(ReplayDigest), 2},
      {kAdoptionChunk, events, part, take_adoptions},
      {kStopChunk, state, part, take_stop},
      {kStandInChunk, state, part,
       [](In& in, Parts& to) {
         to.stand_ins = std::make_shared<const StandIns>(decode_stand_ins(in));
       }},
      {kCheckpointChunk, checkpoints, apart, nullptr},
      {kCheckpointIndexChunk, checkpoints, apart, nullptr},
      {kPlacementChunk, events, apart,
       [](In& in, Parts& to) { to.placements = decode_placements(in); }},
      {kHintChunk, events, hint, take_hints},
      {kSelectChunk, archive, part, nullptr},
      {kLostChunk, archive, part, take_lost},
      {kSymbolChunk, symbols, apart, nullptr},
      {kMachineChunk, machine, part, nullptr},
      {kBusNoteChunk, machine, part, nullptr},
      {kEdgeChunk, machine, part, nullptr},
      {kDroppedChunk, events, part,
       [](In& in, Parts& to) {
         decode_dropped_translations(in, to.recording.dropped_translations);
       },
       sizeof(DroppedTranslation), 3},
  });
}();

}  // namespace

std::span<const ChunkRow> chunk_rows() { return kRows; }

const ChunkRow* find_chunk_row(ChunkKind kind) {
  const auto found = std::find_if(kRows.begin(), kRows.end(),
                                  [kind](const ChunkRow& row) { return row.kind == kind; });
  return found == kRows.end() ? nullptr : &*found;
}

void add_optional_chunks(const Recording& recording,
                         const std::function<void(ChunkKind, std::vector<std::uint8_t>)>& add) {
  struct OptionalChunk {
    ChunkKind kind;
    void (*put)(const Recording& recording, ByteWriter& out);  ///< nothing: there is no chunk
  };
  for (const auto& [kind, put] :
       {OptionalChunk{kStopChunk, put_stop}, OptionalChunk{kAdoptionChunk, put_adoptions}}) {
    ByteWriter out;
    put(recording, out);
    if (out.size() != 0) add(kind, out.take());
  }
}

}  // namespace citcat
