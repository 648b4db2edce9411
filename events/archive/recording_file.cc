#include "events/archive/recording_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>
#include <utility>

#include "events/archive/container.h"
#include "events/archive/event_codec.h"
#include "events/archive/evidence_codec.h"
#include "events/archive/file_evidence.h"
#include "events/archive/machine_chunks.h"
#include "events/archive/recording_codec.h"
#include "events/archive/recording_memory.h"
#include "events/archive/symbol_codec.h"
#include "events/processors/external_edges.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/memory_limit.h"

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

std::vector<std::uint8_t> encode_selection(std::size_t number) {
  ByteWriter out;
  out.varint(number);
  return out.take();
}

/// Recordings appear in the order of their numbers, so that a number says how many there are.
std::size_t decode_selection(ByteReader& in, std::size_t known) {
  const std::size_t number = in.count("number of a recording", known);
  in.expect_end("the selection of a recording");
  return number;
}

std::vector<std::uint8_t> encode_stop(Position end) {
  ByteWriter out;
  out.varint(end.instruction);
  out.varint(end.iteration);
  return out.take();
}

Position decode_stop(ByteReader& in) {
  Position end;
  end.instruction = in.varint("last instruction");
  end.iteration = static_cast<std::uint32_t>(in.count("last iteration", ~std::uint32_t{0}));
  in.expect_end("the stop chunk");
  return end;
}

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

/// Applies the archive's own hints: one that means nothing there is damage, not a user's mistake.
void apply_own_hints(const std::vector<Hint>& hints, Recording& recording,
                     const std::string& path) {
  try {
    for (const Hint& hint : hints) apply_hint(hint, recording);
  } catch (const UsageError& error) {
    throw FormatError(path, 0, error.what());
  }
}

/// What the recording of a processor leaves out, because it follows from the others', put back.
ExternalWrites external_writes_of(std::size_t processor, const std::vector<RecordingFile>& all,
                                  const std::vector<BusNote>& notes) {
  std::vector<ProcessorShare> shares;
  for (const RecordingFile& file : all) {
    if (file.meta().evidence != EvidenceMode::full) {
      throw FormatError(file.container().path(), 0,
                        "expected evidence of every processor, from which external writes follow "
                        "that are left out, found digests of number " +
                            std::to_string(file.number()));
    }
    shares.push_back({&file.recording(), file.evidence()});
  }
  auto writes =
      derive_external_writes(std::move(shares), notes, all.front().recording().initial.ram_bytes);
  ExternalWrites its;
  for (const ExternalWrite& write : writes.at(processor)) its.push_back(write);
  return its;
}

}  // namespace

RecordingName parse_recording_name(const std::string& name) {
  const std::size_t at = name.rfind('@');
  const std::string_view digits =
      at == std::string::npos ? std::string_view{} : std::string_view(name).substr(at + 1);
  std::size_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  std::error_code ignored;
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() ||
      std::filesystem::exists(name, ignored)) {
    return {name, std::nullopt};
  }
  return {name.substr(0, at), number};
}

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
  if (recording.bus.stand_ins != nullptr) {
    container_->add(kStandInChunk, encode_stand_ins(*recording.bus.stand_ins), kSmallCompression);
  }
  add_image(*container_, recording.image, options_);
  add_event_chunks(*container_, kInterruptChunk, recording.interrupts, options_, encode_interrupts);
  add_packed_chunks(*container_, kExternalWriteChunk, recording.external_writes, options_,
                    encode_external_writes);
  add_packed_chunks(*container_, kIoReadChunk, recording.io_reads, options_, encode_io_reads);
  add_packed_chunks(*container_, kInternalReadChunk, recording.internal_reads, options_,
                    encode_internal_reads);
  if (recording.end) container_->add(kStopChunk, encode_stop(*recording.end), kSmallCompression);
  if (!recording.adoptions.empty()) {
    ByteWriter adoptions;
    write_adoptions(adoptions, recording.adoptions);
    container_->add(kAdoptionChunk, adoptions.take(), kSmallCompression);
  }
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
  std::size_t selected = 0;
  for (const ChunkInfo& chunk : archive.chunks()) {
    if (chunk.kind != kSelectChunk) continue;
    const std::vector<std::uint8_t> payload = archive.read(chunk);
    ByteReader in(payload, name.path, chunk.offset);
    selected = decode_selection(in, ~std::size_t{0} - 1);
  }
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

RecordingFile RecordingFile::open(const std::string& path) {
  const RecordingName name = parse_recording_name(path);
  const auto container = std::make_shared<const ContainerReader>(name.path);
  const MachineChunks machine = machine_chunks(*container);
  const std::size_t processors = machine.info.processors;
  if (processors != 0 && !name.number) {
    throw UsageError(name.path + " holds " + std::to_string(processors) +
                     " processors: say which one by its name, " + name.path + "@0 to " + name.path +
                     "@" + std::to_string(processors - 1));
  }
  const auto read = [&](std::optional<std::size_t> number) {
    RecordingFile file;
    file.container_ = container;
    file.number_ = number.value_or(0);
    file.select_chunks(number.has_value());
    file.load_all();
    file.require_chunks();
    return file;
  };
  RecordingFile file = read(name.number);
  if (processors != 0 && processors != file.recordings_) {
    throw FormatError(name.path, 0,
                      "expected a recording of each of " + std::to_string(processors) +
                          " processors, found " + std::to_string(file.recordings_));
  }
  if (machine.info.leaves_out) {
    std::vector<RecordingFile> all;
    for (std::size_t i = 0; i < processors; ++i) all.push_back(read(i));
    file.recording_.external_writes = external_writes_of(file.number_, all, machine.notes);
  }
  apply_own_hints(file.hints_, file.recording_, name.path);
  if (!apply_placements(file.placements_, file.recording_)) {
    throw FormatError(name.path, 0,
                      "expected placements of the recording's interrupts, found one of another");
  }
  std::vector<std::string>& warnings = file.recording_.warnings;
  if (file.recordings_ > 1 && !name.number) {
    warnings.push_back("the archive holds " + std::to_string(file.recordings_) +
                       " recordings, this is the first; add @1 and so on to its name for others");
  }
  warnings.insert(warnings.end(), file.lost_.begin(), file.lost_.end());
  if (const auto end = file.container_->unfinished_append()) {
    warnings.push_back("an append to this archive was interrupted; what follows offset " +
                       std::to_string(*end) + " is ignored");
  }
  return file;
}

void RecordingFile::apply(const HintFile& file, const std::string& source) {
  const std::string own = identity(false).hex();
  if (!file.recording.empty() && file.recording != own) {
    throw FormatError(
        source, 0,
        "expected hints for the recording " + own + ", found those for " + file.recording);
  }
  for (const Hint& hint : file.hints) {
    apply_hint(hint, recording_);
    hints_.push_back(hint);
  }
}

/// A single bit that another processor changed is no damage.
std::vector<std::uint64_t> RecordingFile::waived() const {
  return reviewed_transactions(hints_, edges_of(*container_, number_));
}

void RecordingFile::set_schedule(Schedule schedule, std::vector<PlacedEvent> placements) {
  recording_.set_schedule(std::move(schedule));
  placements_ = std::move(placements);
}

namespace {

/// What each of the container's chunks of selection selects, in their order. Those of the container
/// that was asked for last are kept: whoever goes through thousands of recordings in one file opens
/// it for each.
const std::vector<std::size_t>& selections_of(const ContainerReader& container) {
  struct Kept {
    std::string path;
    Hash128 content;
    std::vector<std::size_t> selections;
  };
  thread_local Kept kept;
  if (kept.path == container.path() && kept.content == container.content_hash())
    return kept.selections;
  Kept found{container.path(), container.content_hash(), {}};
  std::size_t recordings = 1;
  for (const ChunkInfo& chunk : container.chunks()) {
    if (chunk.kind != kSelectChunk) continue;
    const std::vector<std::uint8_t> payload = container.read(chunk);
    ByteReader in(payload, container.path(), chunk.offset);
    found.selections.push_back(decode_selection(in, recordings));
    recordings = std::max(recordings, found.selections.back() + 1);
  }
  kept = std::move(found);
  return kept.selections;
}

}  // namespace

/// Finds the chunks of this recording among those of all.
void RecordingFile::select_chunks(bool named) {
  auto selection = selections_of(*container_).begin();
  std::size_t selected = 0;
  for (const ChunkInfo& chunk : container_->chunks()) {
    if (chunk.kind == kSelectChunk) {
      selected = *selection++;
      recordings_ = std::max(recordings_, selected + 1);
    } else if (chunk.kind == kMachineChunk || chunk.kind == kBusNoteChunk ||
               chunk.kind == kEdgeChunk) {
      continue;  // of all recordings together: machine_chunks.h
    } else if (selected == number_) {
      chunks_.push_back(chunk);
    }
  }
  if (named && number_ >= recordings_) {
    throw UsageError(container_->path() + " holds " + std::to_string(recordings_) +
                     " recordings, numbered from 0: there is no @" + std::to_string(number_));
  }
}

void RecordingFile::load_all() {
  // First what says how much of everything there can be.
  for (const ChunkInfo& chunk : chunks_) {
    if (chunk.kind == kMetaChunk) load(chunk);
  }
  for (const ChunkInfo& chunk : chunks_) {
    if (chunk.kind != kMetaChunk) load(chunk);
  }
}

/// Throws FormatError, before anything is allocated for the chunk, when it would become more than
/// the archive's own totals allow, or than memory_limit().
void RecordingFile::allow(const ChunkInfo& chunk, ByteReader in) {
  std::uint64_t bytes = chunk.plain_bytes;
  if (has_rows(chunk.kind)) {
    const ChunkMemory memory = chunk_memory(chunk.kind, in.varint("rows"));
    (is_packed(chunk.kind) ? bytes : held_) += memory.kept;
    bytes += memory.decoding;
  }
  bytes += held_ + packed_memory(recording_);
  const std::string& name = container_->path();
  require_memory(bytes, name, chunk.offset, "the recording");
  const std::uint64_t allowed =
      allowed_memory(recording_, meta_.uncounted_values, container_->file_bytes());
  if (bytes <= allowed) return;
  throw FormatError(name, chunk.offset,
                    "expected a recording of at most " + std::to_string(allowed) +
                        " bytes of memory, as many as its totals allow, found " +
                        std::to_string(bytes));
}

void RecordingFile::load(const ChunkInfo& chunk) {
  for (const ChunkKind later :
       {kEvidenceChunk, kCheckpointChunk, kCheckpointIndexChunk, kSymbolChunk}) {
    if (chunk.kind == later) return;
  }
  require_memory(held_ + chunk.plain_bytes, container_->path(), chunk.offset, "the recording");
  const std::vector<std::uint8_t> payload = container_->read(chunk);
  ByteReader in(payload, container_->path(), chunk.offset);
  allow(chunk, in);
  if (chunk.kind == kMetaChunk) {
    if (has_meta_) in.fail("expected one META chunk for a recording, found another");
    decode_meta(in, recording_, meta_);
    has_meta_ = true;
  } else if (chunk.kind == kCpuChunk) {
    recording_.initial = decode_cpu(in);
    has_cpu_ = true;
  } else if (chunk.kind == kStandInChunk) {
    recording_.bus.stand_ins = std::make_shared<const StandIns>(decode_stand_ins(in));
  } else if (chunk.kind == kImageChunk) {
    decode_image(in, recording_.image);
  } else if (chunk.kind == kInterruptChunk) {
    decode_interrupts(in, recording_.interrupts);
  } else if (chunk.kind == kExternalWriteChunk) {
    decode_external_writes(in, recording_.external_writes);
  } else if (chunk.kind == kIoReadChunk) {
    decode_io_reads(in, recording_.io_reads);
  } else if (chunk.kind == kInternalReadChunk) {
    decode_internal_reads(in, recording_.internal_reads);
  } else if (chunk.kind == kAdoptionChunk) {
    recording_.adoptions = read_adoptions(in);
    in.expect_end("the adoptions chunk");
  } else if (chunk.kind == kStopChunk) {
    recording_.end = decode_stop(in);
  } else if (chunk.kind == kDigestChunk) {
    decode_digests(in, digests_);
  } else if (chunk.kind == kPlacementChunk) {
    placements_ = decode_placements(in);
  } else if (chunk.kind == kHintChunk) {
    const std::string text(payload.begin(), payload.end());
    for (Hint& hint : parse_hints(text, container_->path() + " (HINT)").hints) {
      hints_.push_back(std::move(hint));
    }
  } else if (chunk.kind == kLostChunk) {
    lost_.push_back("part of this recording was lost before it was repaired: " +
                    decode_lost_chunk(in).message);
  } else {
    in.fail("expected a chunk of a recording, found " + chunk_kind_name(chunk.kind));
  }
}

void RecordingFile::require_chunks() const {
  if (has_meta_ && has_cpu_) return;
  throw FormatError(container_->path(), 0,
                    std::string("expected a recording, found an archive without the ") +
                        (has_meta_ ? "CPUS" : "META") + " chunk");
}

Hash128 RecordingFile::identity(bool hinted) const {
  Recording bare;
  bare.bus = recording_.bus;
  bare.totals = recording_.totals;
  bare.instructions = recording_.instructions;
  Hasher128 hasher;
  ArchiveMeta meta = meta_;
  meta.engine.clear();
  meta.uncounted_values = 0;  // follows from the chunks
  hasher.update(encode_meta(bare, meta));
  for (const ChunkInfo& chunk : chunks_) {
    if (chunk.kind == kMetaChunk || chunk.kind == kDigestChunk || chunk.kind == kCheckpointChunk ||
        chunk.kind == kCheckpointIndexChunk || chunk.kind == kPlacementChunk ||
        chunk.kind == kSymbolChunk || (chunk.kind == kHintChunk && !hinted))
      continue;
    ByteWriter out;
    out.u32(chunk.kind);
    out.string(chunk.hash.hex());
    hasher.update(out.view());
  }
  return hasher.value();
}

std::vector<ChunkInfo> RecordingFile::chunks_of(ChunkKind kind) const {
  std::vector<ChunkInfo> found;
  for (const ChunkInfo& chunk : chunks_) {
    if (chunk.kind == kind) found.push_back(chunk);
  }
  return found;
}

std::vector<std::uint8_t> RecordingFile::checkpoint(const ChunkInfo& chunk) const {
  return container_->read(chunk);
}

std::vector<ChunkInfo> RecordingFile::checkpoints() const { return chunks_of(kCheckpointChunk); }

std::vector<ChunkInfo> RecordingFile::checkpoint_indexes() const {
  return chunks_of(kCheckpointIndexChunk);
}

std::vector<SymbolModule> RecordingFile::symbols() const {
  std::vector<SymbolModule> modules;
  for (const ChunkInfo& chunk : chunks_of(kSymbolChunk)) {
    const std::vector<std::uint8_t> payload = container_->read(chunk);
    ByteReader in(payload, container_->path(), chunk.offset);
    decode_symbols(in, modules);
  }
  return modules;
}

std::optional<ClockSpan> RecordingFile::evidence_clocks() const {
  // Those of one chunk, as if it were all evidence.
  const auto clocks_of = [this](const ChunkInfo& info) -> std::optional<ClockSpan> {
    FileEvidenceReader evidence(container_, {info});
    std::optional<ClockSpan> clocks;
    for (BusTransaction t; evidence.next(t);) {
      if (!t.has(kClockKnown)) continue;
      if (!clocks) clocks = ClockSpan{t.clock, t.clock};
      clocks->last = t.clock;
    }
    return clocks;
  };
  const std::vector<ChunkInfo> chunks = chunks_of(kEvidenceChunk);
  for (auto first = chunks.begin(); first != chunks.end(); ++first) {
    std::optional<ClockSpan> clocks = clocks_of(*first);
    if (!clocks) continue;
    for (auto last = chunks.end() - 1; last != first; --last) {
      if (const auto end = clocks_of(*last)) {
        clocks->last = end->last;
        break;
      }
    }
    return clocks;
  }
  return std::nullopt;
}

std::unique_ptr<EvidenceReader> RecordingFile::evidence() const {
  if (meta_.evidence != EvidenceMode::full) {
    throw UsageError(container_->path() + " holds digests in place of the evidence");
  }
  auto evidence = std::make_unique<FileEvidenceReader>(container_, chunks_);
  const bool corrected = std::any_of(hints_.begin(), hints_.end(),
                                     [](const Hint& hint) { return hint.concerns_evidence(); });
  if (!corrected) return evidence;
  return std::make_unique<HintedEvidence>(std::move(evidence), hints_);
}

}  // namespace citcat
