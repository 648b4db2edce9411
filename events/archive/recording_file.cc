#include "events/archive/recording_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "events/archive/chunk_table.h"
#include "events/archive/container.h"
#include "events/archive/evidence_codec.h"
#include "events/archive/file_evidence.h"
#include "events/archive/machine_chunks.h"
#include "events/archive/recording_codec.h"
#include "events/archive/recording_memory.h"
#include "events/archive/recording_selection.h"
#include "events/archive/symbol_codec.h"
#include "events/machine/stand_ins.h"
#include "events/processors/external_edges.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/memory_limit.h"

namespace citcat {
namespace {

/// Applies the archive's own hints: one that means nothing there is damage, not a user's mistake.
void apply_own_hints(const std::vector<Hint>& hints, Recording& recording,
                     const std::string& path) {
  try {
    for (const Hint& hint : hints) apply_hint(hint, recording);
  } catch (const UsageError& error) {
    throw FormatError(path, 0, error.what());
  }
}

/// One for each stretch of pages that follow each other in memory.
void add_translated(const ExternalWrite& write, const StandIns& stand_ins, ExternalWrites& to) {
  ExternalWrite piece = write;
  piece.data.clear();
  for (std::size_t at = 0; at < write.data.size();) {
    const PhysAddr shown = write.address.plus32(static_cast<std::uint32_t>(at));
    const std::size_t size =
        std::min<std::size_t>(write.data.size() - at, kPageSize - shown.offset_in_page());
    const PhysAddr meant = stand_ins.meant(shown);
    if (!piece.data.empty() && meant.value != piece.address.value + piece.data.size()) {
      to.push_back(piece);
      piece.data.clear();
    }
    if (piece.data.empty()) piece.address = meant;
    const auto begin = write.data.begin() + static_cast<std::ptrdiff_t>(at);
    piece.data.insert(piece.data.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
    at += size;
  }
  to.push_back(piece);
}

/// What an earlier version has written has the addresses of stand-ins for memory beyond 4 GiB.
void translate_addresses(RecordingParts& parts) {
  const StandIns& stand_ins = *parts.stand_ins;
  Recording& recording = parts.recording;
  MemoryImage image;
  for (const auto& [number, page] : recording.image.pages())
    image.page(stand_ins.meant(PhysAddr{number * kPageSize}).page()) = *page;
  recording.image = std::move(image);
  ExternalWrites writes;
  for (const ExternalWrite& write : recording.external_writes)
    add_translated(write, stand_ins, writes);
  parts.has_other_events = writes.size() != recording.external_writes.size();
  recording.external_writes = std::move(writes);
  for (Adoption& a : recording.adoptions) a.address = stand_ins.meant(a.address);
  for (Hint& hint : parts.hints) hint.address = stand_ins.meant(hint.address);
  if (parts.digests.empty()) return;
  // They are of the addresses as they were then.
  parts.digests.clear();
  recording.warnings.emplace_back(
      "an earlier version made the digests of this recording, which uses memory beyond 4 GiB: they "
      "are left out");
}

/// Parts that a processor's recording leaves out because the other recordings imply them.
struct PutBack {
  std::vector<ExternalWrites> writes;  ///< by processor: all that its recording has then
  /// The transactions that show those of one byte that were left out: another one made them.
  std::vector<std::vector<std::uint64_t>> single;
};

/// Those of one byte among `all` that were not `stored`.
std::vector<std::uint64_t> single_others(const std::vector<ExternalWrite>& all,
                                         const ExternalWrites& stored) {
  std::vector<std::uint64_t> single;
  auto next = stored.begin();
  for (const ExternalWrite& write : all) {
    if (next != stored.end() && is_same_change(*next, write)) {
      ++next;
    } else if (write.data.size() == 1) {
      single.push_back(write.transaction);
    }
  }
  return single;
}

/// All of it at once.
PutBack derive_left_out(const std::vector<RecordingFile>& all, const std::vector<BusNote>& notes) {
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
  PutBack back;
  for (const auto& derived : derive_external_writes(std::move(shares), notes,
                                                    all.front().recording().initial.ram_bytes)) {
    const ExternalWrites& stored = all[back.writes.size()].recording().external_writes;
    back.single.push_back(single_others(derived, stored));
    back.writes.emplace_back();
    for (const ExternalWrite& write : derived) back.writes.back().push_back(write);
  }
  return back;
}

/// Who opens one processor of an archive mostly opens the others next: what was derived for them is
/// kept for the first that asks for each.
class LeftOut {
 public:
  template <typename Derive>
  ExternalWrites take(const Hash128& archive, std::size_t processor, Derive derive) {
    const std::lock_guard lock(mutex_);
    if (archive_ != archive || processor >= writes_.size() || !writes_[processor]) {
      writes_.clear();
      PutBack back = derive();
      for (ExternalWrites& its : back.writes) writes_.emplace_back(std::move(its));
      single_.insert_or_assign({archive.low, archive.high}, std::move(back.single));
      archive_ = archive;
    }
    ExternalWrites its = std::move(writes_.at(processor).value());
    writes_[processor].reset();
    return its;
  }
  /// PutBack::single of one that was taken from an archive; of others, none.
  std::vector<std::uint64_t> single(const Hash128& archive, std::size_t processor) {
    const std::lock_guard lock(mutex_);
    const auto its = single_.find({archive.low, archive.high});
    return its == single_.end() ? std::vector<std::uint64_t>{} : its->second.at(processor);
  }

 private:
  std::mutex mutex_;
  std::optional<Hash128> archive_;
  std::vector<std::optional<ExternalWrites>> writes_;  ///< by processor; nothing: taken
  /// For every archive that was opened, because recordings may ask at any time.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::vector<std::uint64_t>>>
      single_;
};

LeftOut& kept_left_out() {
  static LeftOut kept;
  return kept;
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
  file.parts_.recording.shares_bus = processors != 0;
  if (machine.info.leaves_out) {
    file.parts_.recording.external_writes =
        kept_left_out().take(container->content_hash(), file.number_, [&] {
          std::vector<RecordingFile> all;
          for (std::size_t i = 0; i < processors; ++i) all.push_back(read(i));
          return derive_left_out(all, machine.notes);
        });
  }
  apply_own_hints(file.parts_.hints, file.parts_.recording, name.path);
  if (!apply_placements(file.parts_.placements, file.parts_.recording)) {
    throw FormatError(name.path, 0,
                      "expected placements of the recording's interrupts, found one of another");
  }
  std::vector<std::string>& warnings = file.parts_.recording.warnings;
  if (file.recordings_ > 1 && !name.number) {
    warnings.push_back("the archive holds " + std::to_string(file.recordings_) +
                       " recordings, this is the first; add @1 and so on to its name for others");
  }
  warnings.insert(warnings.end(), file.parts_.lost.begin(), file.parts_.lost.end());
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
    apply_hint(hint, parts_.recording);
    parts_.hints.push_back(hint);
  }
}

std::vector<std::uint64_t> RecordingFile::waived() const {
  return reviewed_transactions(parts_.hints);
}

std::vector<std::uint64_t> RecordingFile::told_changes() const {
  std::vector<std::uint64_t> all = edges_of(*container_, number_);
  const auto known = static_cast<std::ptrdiff_t>(all.size());
  const std::vector<std::uint64_t> more =
      kept_left_out().single(container_->content_hash(), number_);
  all.insert(all.end(), more.begin(), more.end());
  std::inplace_merge(all.begin(), all.begin() + known, all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

void RecordingFile::set_schedule(Schedule schedule, std::vector<PlacedEvent> placements) {
  parts_.recording.set_schedule(std::move(schedule));
  parts_.placements = std::move(placements);
}

/// Finds the chunks of this recording among those of all.
void RecordingFile::select_chunks(bool named) {
  auto selection = selections_of(*container_).begin();
  std::size_t selected = 0;
  for (const ChunkInfo& chunk : container_->chunks()) {
    if (chunk.kind == kSelectChunk) {
      selected = *selection++;
      recordings_ = std::max(recordings_, selected + 1);
    } else if (const ChunkRow* const row = find_chunk_row(chunk.kind);
               row != nullptr && row->purpose == ChunkPurpose::machine) {
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
  if (parts_.stand_ins != nullptr) translate_addresses(parts_);
}

PhysAddr RecordingFile::meant(PhysAddr at) const {
  return parts_.stand_ins == nullptr ? at : parts_.stand_ins->meant(at);
}

/// Throws FormatError, before anything is allocated for the chunk, when it would become more than
/// the archive's own totals allow, or than memory_limit().
void RecordingFile::allow(const ChunkInfo& chunk, const ChunkRow& row, ByteReader in) {
  std::uint64_t bytes = chunk.plain_bytes;
  if (row.row_bytes != 0) {
    const ChunkMemory memory = chunk_memory(row, in.varint("rows"));
    (row.packed ? bytes : held_) += memory.kept;
    bytes += memory.decoding;
  }
  bytes += held_ + packed_memory(parts_.recording);
  const std::string& name = container_->path();
  require_memory(bytes, name, chunk.offset, "the recording");
  const std::uint64_t allowed =
      allowed_memory(parts_.recording, parts_.meta.uncounted_values, container_->file_bytes());
  if (bytes <= allowed) return;
  throw FormatError(name, chunk.offset,
                    "expected a recording of at most " + std::to_string(allowed) +
                        " bytes of memory, as many as its totals allow, found " +
                        std::to_string(bytes));
}

void RecordingFile::load(const ChunkInfo& chunk) {
  const ChunkRow* const row = find_chunk_row(chunk.kind);
  if (row == nullptr || row->purpose == ChunkPurpose::machine) {
    throw FormatError(container_->path(), chunk.offset,
                      "expected a chunk of a recording, found " + chunk_kind_name(chunk.kind));
  }
  if (row->decode == nullptr) return;  // read when somebody asks for it
  require_memory(held_ + chunk.plain_bytes, container_->path(), chunk.offset, "the recording");
  const std::vector<std::uint8_t> payload = container_->read(chunk);
  ByteReader in(payload, container_->path(), chunk.offset);
  allow(chunk, *row, in);
  row->decode(in, parts_);
}

void RecordingFile::require_chunks() const {
  if (parts_.has_meta && parts_.has_cpu) return;
  throw FormatError(container_->path(), 0,
                    std::string("expected a recording, found an archive without the ") +
                        (parts_.has_meta ? "CPUS" : "META") + " chunk");
}

Hash128 RecordingFile::identity(bool hinted) const {
  Recording bare;
  bare.bus = parts_.recording.bus;
  bare.totals = parts_.recording.totals;
  bare.instructions = parts_.recording.instructions;
  Hasher128 hasher;
  ArchiveMeta meta = parts_.meta;
  meta.engine.clear();
  meta.uncounted_values = 0;  // follows from the chunks
  hasher.update(encode_meta(bare, meta));
  for (const ChunkInfo& chunk : chunks_) {
    const ChunkIdentity counts = find_chunk_row(chunk.kind)->identity;
    if (counts == ChunkIdentity::apart || (counts == ChunkIdentity::hint && !hinted)) continue;
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
  if (parts_.has_other_events) return {};
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
  if (parts_.meta.evidence != EvidenceMode::full) {
    throw UsageError(container_->path() + " holds digests in place of the evidence");
  }
  auto evidence = std::make_unique<FileEvidenceReader>(container_, chunks_, parts_.stand_ins);
  const bool corrected = std::any_of(parts_.hints.begin(), parts_.hints.end(),
                                     [](const Hint& hint) { return hint.concerns_evidence(); });
  if (!corrected) return evidence;
  return std::make_unique<HintedEvidence>(std::move(evidence), parts_.hints);
}

}  // namespace citcat
