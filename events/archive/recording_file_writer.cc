// Writing an archive, and adding to one: RecordingFileWriter and RecordingAppender.

#include <algorithm>
#include <span>
#include <utility>

#include "events/archive/chunk_table.h"
#include "events/archive/container.h"
#include "events/archive/event_codec.h"
#include "events/archive/evidence_codec.h"
#include "events/archive/recording_codec.h"
#include "events/archive/recording_file.h"
#include "events/archive/recording_selection.h"
#include "events/archive/symbol_codec.h"
#include "formats/io/error.h"

#ifndef CITCAT_VERSION
#define CITCAT_VERSION "0.1.0"
#endif

namespace citcat {
namespace {

// Chosen by measuring (docs/compression.md): events and image are small and written once.
constexpr ZstdOptions kSmallCompression{19, 0};
constexpr ZstdOptions kImageCompression{19, 24};
/// Events of a chunk: as many as wait in memory while a capture is read.
constexpr std::size_t kEventsAtATime = std::size_t{1} << 16;
static_assert(kEventsAtATime <= kEventChunkRows);
/// What is large, or small beside the evidence, takes this: the best would take longer than all
/// else that an import does, for a small part of the archive.
constexpr int kQuickLevel = 4;
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::uint64_t kSmallPart = 3;
/// What is tiny takes half as long as the best: two thousandths more.
constexpr int kTinyLevel = 18;
constexpr std::size_t kTiny = std::size_t{1} << 16;
constexpr ZstdOptions kPassingCompression{1, 0};
/// Some hundred thousand names: a third more than at the best level, in a tenth of its time.
constexpr ZstdOptions kSymbolCompression{9, 0};
/// Checkpoints are compressed already, in pieces that are read one by one.
constexpr ZstdOptions kCheckpointCompression{1, 0};

/// Calls `add` with pieces of `digests` that fit a chunk.
template <typename Add>
void add_digest_chunks(std::span<const ReplayDigest> digests, Add add) {
  while (!digests.empty()) {
    const auto piece = digests.first(std::min(digests.size(), kEventChunkRows));
    add(encode_digests(piece));
    digests = digests.subspan(piece.size());
  }
}

void add_chunk(ContainerWriter& container, ChunkKind kind, std::vector<std::uint8_t> payload,
               ZstdOptions compression, const RecordingFileOptions& options) {
  if (options.passing) compression = kPassingCompression;
  const bool quick = payload.size() > kLarge || payload.size() < container.size() / kSmallPart;
  if (options.evidence == EvidenceMode::full) {
    if (quick) compression.level = kQuickLevel;
    if (!quick && payload.size() <= kTiny) compression.level = kTinyLevel;
  }
  container.add(kind, std::move(payload), compression);
}

/// Calls `encode` for pieces of `events` that fit a chunk and adds them.
template <typename Event, typename Encode>
void add_event_chunks(ContainerWriter& container, ChunkKind kind, const std::vector<Event>& events,
                      const RecordingFileOptions& options, Encode encode) {
  std::span<const Event> rest(events);
  while (!rest.empty()) {
    const auto piece = rest.first(std::min(rest.size(), kEventsAtATime));
    add_chunk(container, kind, encode(piece, options.lean), kSmallCompression, options);
    rest = rest.subspan(piece.size());
  }
}

/// The same of packed ones, of which only a chunk at a time is unpacked.
template <typename Events, typename Encode>
void add_packed_chunks(ContainerWriter& container, ChunkKind kind, const Events& events,
                       const RecordingFileOptions& options, Encode encode) {
  std::vector<typename Events::Event> piece;
  for (auto i = events.begin(); i != events.end();) {
    piece.clear();
    for (; piece.size() < kEventsAtATime && i != events.end(); ++i) piece.push_back(*i);
    add_event_chunks(container, kind, piece, options, encode);
  }
}

void add_image(ContainerWriter& container, const MemoryImage& image,
               const RecordingFileOptions& options) {
  const std::size_t pages = image.pages().size();
  for (std::size_t begin = 0; begin < pages; begin += kImageChunkPages) {
    const std::size_t end = std::min(pages, begin + kImageChunkPages);
    add_chunk(container, kImageChunk, encode_image(image, begin, end), kImageCompression, options);
  }
}

template <typename Add>
void add_symbol_chunks(std::span<const SymbolModule> modules, Add add) {
  for (const SymbolModule& module : modules) encode_symbols(module, add);
}

}  // namespace

std::string default_engine_identity() { return "citcat " CITCAT_VERSION; }

RecordingFileWriter::RecordingFileWriter(const std::string& path, RecordingFileOptions options)
    : options_(std::move(options)),
      container_(std::make_unique<ContainerWriter>(path)),
      evidence_(std::make_unique<EvidenceEncoder>()) {}

RecordingFileWriter::~RecordingFileWriter() = default;

void RecordingFileWriter::write_all(std::span<const BusTransaction> transactions) {
  if (options_.evidence != EvidenceMode::full) return;
  while (!transactions.empty()) {
    const auto some = transactions.first(
        std::min(transactions.size(), kEvidenceChunkTransactions - evidence_->size()));
    evidence_->add(some);
    if (evidence_->full()) add_evidence();
    transactions = transactions.subspan(some.size());
  }
}

void RecordingFileWriter::write_run(const AccessRun& run) {
  if (options_.evidence != EvidenceMode::full) return;
  for (std::size_t i = 0; i < run.size();) {
    const AccessRun some =
        run.part(i, std::min(run.size() - i, kEvidenceChunkTransactions - evidence_->size()));
    evidence_->add(some);
    if (evidence_->full()) add_evidence();
    i += some.size();
  }
}

std::size_t RecordingFileWriter::events_at_a_time() const { return kEventsAtATime; }

void RecordingFileWriter::write_events(const Events& events) {
  mark();
  add_events(events.interrupts, events.external_writes, events.io_reads);
}

void RecordingFileWriter::add_events(const std::vector<Interrupt>& interrupts,
                                     const std::vector<ExternalWrite>& external_writes,
                                     const std::vector<IoRead>& io_reads) {
  add_event_chunks(*container_, kInterruptChunk, interrupts, options_, encode_interrupts);
  add_event_chunks(*container_, kExternalWriteChunk, external_writes, options_,
                   encode_external_writes);
  add_event_chunks(*container_, kIoReadChunk, io_reads, options_, encode_io_reads);
}

/// Ends the chunk, if anything is in it.
void RecordingFileWriter::add_evidence() {
  if (evidence_->size() == 0) return;
  mark();
  // Another thread would have to fetch all of it from this one's caches.
  container_->add_here(kEvidenceChunk, evidence_->encode(),
                       ZstdOptions{options_.evidence_level, 0});
  evidence_->clear();
}

void RecordingFileWriter::select(std::size_t number) {
  add_evidence();
  selected_ = number;
  // Also where nothing of it follows: the numbers appear in their order.
  if (number < named_) return;
  mark();
  named_ = number + 1;
}

/// Says whose the next chunk is, unless that is clear.
void RecordingFileWriter::mark() {
  if (marked_ == selected_) return;
  container_->add(kSelectChunk, encode_selection(selected_), kSmallCompression);
  marked_ = selected_;
}

void RecordingFileWriter::finish(const Recording& recording,
                                 std::span<const ReplayDigest> digests) {
  add(recording, digests);
  close();
}

void RecordingFileWriter::add_symbols(std::span<const SymbolModule> modules) {
  mark();
  add_symbol_chunks(modules, [this](std::vector<std::uint8_t> payload) {
    container_->add(kSymbolChunk, std::move(payload), kSymbolCompression);
  });
}

void RecordingFileWriter::close() { container_->finish(); }

void RecordingFileWriter::add(const Recording& recording, std::span<const ReplayDigest> digests) {
  add_evidence();
  mark();
  ArchiveMeta meta;
  meta.engine = options_.engine;
  meta.evidence = options_.evidence;
  meta.lean = options_.lean;
  meta.uncounted_values = recording.internal_reads.size();
  container_->add(kMetaChunk, encode_meta(recording, meta), kSmallCompression);
  container_->add(kCpuChunk, encode_cpu(recording.initial), kSmallCompression);
  add_image(*container_, recording.image, options_);
  add_event_chunks(*container_, kInterruptChunk, recording.interrupts, options_, encode_interrupts);
  add_packed_chunks(*container_, kExternalWriteChunk, recording.external_writes, options_,
                    encode_external_writes);
  add_packed_chunks(*container_, kIoReadChunk, recording.io_reads, options_, encode_io_reads);
  add_packed_chunks(*container_, kInternalReadChunk, recording.internal_reads, options_,
                    encode_internal_reads);
  add_event_chunks(*container_, kDroppedChunk, recording.dropped_translations, options_,
                   encode_dropped_translations);
  add_optional_chunks(recording, [this](ChunkKind kind, std::vector<std::uint8_t> payload) {
    container_->add(kind, std::move(payload), kSmallCompression);
  });
  add_digests(digests);
}

void RecordingFileWriter::add_digests(std::span<const ReplayDigest> digests) {
  add_digest_chunks(digests, [this](std::vector<std::uint8_t> payload) {
    container_->add(kDigestChunk, std::move(payload), kSmallCompression);
  });
}

RecordingAppender::RecordingAppender(const std::string& path,
                                     const std::optional<Hash128>& recording)
    : container_(std::make_unique<ContainerAppender>(parse_recording_name(path).path)) {
  const RecordingName name = parse_recording_name(path);
  const ContainerReader archive(name.path);
  const std::vector<std::size_t>& selections = selections_of(archive);
  const std::size_t selected = selections.empty() ? 0 : selections.back();
  if (recording && RecordingFile::open(path).identity() != *recording) {
    throw IoError(path + ": became another recording meanwhile: nothing was added to it");
  }
  const std::size_t wanted = name.number.value_or(0);
  if (selected != wanted)
    container_->add(kSelectChunk, encode_selection(wanted), kSmallCompression);
}

RecordingAppender::~RecordingAppender() = default;

void RecordingAppender::finish() { container_->finish(); }

void RecordingAppender::add_digests(std::span<const ReplayDigest> digests) {
  add_digest_chunks(digests, [this](std::vector<std::uint8_t> payload) {
    container_->add(kDigestChunk, std::move(payload), kSmallCompression);
  });
}

ChunkInfo RecordingAppender::add_checkpoint(std::vector<std::uint8_t> checkpoint) {
  return container_->add(kCheckpointChunk, std::move(checkpoint), kCheckpointCompression);
}

void RecordingAppender::add_checkpoint_index(std::vector<std::uint8_t> index) {
  container_->add(kCheckpointIndexChunk, std::move(index), kSmallCompression);
}

void RecordingAppender::add_placements(std::span<const PlacedEvent> events) {
  container_->add(kPlacementChunk, encode_placements(events), kSmallCompression);
}

void RecordingAppender::add_hints(const HintFile& hints) {
  const std::string text = hints_text(hints);
  container_->add(kHintChunk, {text.begin(), text.end()}, kSmallCompression);
}

void RecordingAppender::add_symbols(std::span<const SymbolModule> modules) {
  add_symbol_chunks(modules, [this](std::vector<std::uint8_t> payload) {
    container_->add(kSymbolChunk, std::move(payload), kSymbolCompression);
  });
}

}  // namespace citcat
