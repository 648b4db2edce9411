#include "replay/session/checkpoints.h"

#include <algorithm>

#include "events/archive/container.h"
#include "formats/io/error.h"
#include "replay/engine/engine.h"
#include "replay/session/adoptions.h"
#include "replay/session/checkpoint_codec.h"
#include "replay/session/replayer.h"

namespace citcat {

namespace {

/// What is stored of the replay at `start`.
Replayer::Checkpoint decode(const RecordingFile& file, const CheckpointStart& start,
                            std::span<const std::uint8_t> state) {
  ByteReader in(state, file.container().path() + ": checkpoint");
  Replayer::Checkpoint checkpoint = decode_checkpoint_state(in, file.recording());
  Mmu::State tlb = *checkpoint.machine.tlb;
  for (auto* const entries : {&tlb.itlb, &tlb.dtlb}) {
    for (Tlb::Entry& entry : *entries) entry.frame = file.meant(PhysAddr{entry.frame}).value;
  }
  checkpoint.machine.tlb = std::make_shared<const Mmu::State>(std::move(tlb));
  if (checkpoint.machine.position.instruction != start.instruction) {
    in.fail_at(0, "expected a checkpoint at instruction " + std::to_string(start.instruction) +
                      ", found one at " + std::to_string(checkpoint.machine.position.instruction));
  }
  return checkpoint;
}

}  // namespace

std::string replay_identity() {
  return default_engine_identity() + ", Unicorn " + Engine::version();
}

Checkpoints::Checkpoints(const RecordingFile& file)
    : file_(file), series_(CheckpointSeries::read(file)) {}

Checkpoints::Start Checkpoints::start_at(std::size_t series, std::size_t ordinal) const {
  const CheckpointSeries& s = series_[series];
  return {series, ordinal, s.entries()[ordinal].instruction, s.run().end};
}

bool Checkpoints::usable(const CheckpointRun& run, bool strict) const {
  return run.engine == replay_identity() && !(strict && !run.adoptions.empty());
}

std::optional<Checkpoints::Start> Checkpoints::start_for(const ReplayRange& range,
                                                         bool strict) const {
  std::optional<Start> best;
  for (std::size_t s = 0; s < series_.size(); ++s) {
    if (!usable(series_[s].run(), strict)) continue;
    const auto& entries = series_[s].entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].instruction >= range.from) break;
      if (!best || best->instruction < entries[i].instruction) best = start_at(s, i);
    }
  }
  return best;
}

std::optional<Checkpoints::Start> Checkpoints::beginning(bool strict) const {
  if (!file_.placements().empty()) return std::nullopt;
  for (std::size_t s = 0; s < series_.size(); ++s) {
    if (usable(series_[s].run(), strict)) return Start{s, std::nullopt, 0, series_[s].run().end};
  }
  return std::nullopt;
}

std::vector<Checkpoints::Start> Checkpoints::longest_series(bool strict) const {
  std::vector<Start> longest;
  for (std::size_t s = 0; s < series_.size(); ++s) {
    const std::size_t count = series_[s].entries().size();
    if (!usable(series_[s].run(), strict) || count == 0 || count < longest.size()) continue;
    longest.assign(1, {s, std::nullopt, 0, series_[s].run().end});
    for (std::size_t i = 0; i < count; ++i) longest.push_back(start_at(s, i));
  }
  return longest;
}

std::optional<Checkpoints::Start> Checkpoints::after(const Start& start) const {
  const std::size_t next = start.ordinal ? *start.ordinal + 1 : 0;
  if (next >= series_[start.series].entries().size()) return std::nullopt;
  return start_at(start.series, next);
}

void Checkpoints::restore(const Start& start, Replayer& replayer,
                          std::optional<Loaded>* loaded) const {
  if (!start.ordinal) return;
  const bool earlier = loaded != nullptr && *loaded && (*loaded)->series == start.series &&
                       (*loaded)->known.ordinal < *start.ordinal;
  const StoredCheckpoint stored =
      series_[start.series].load(file_, *start.ordinal, earlier ? &(*loaded)->known : nullptr);
  if (loaded != nullptr) *loaded = {start.series, {*start.ordinal, stored.pages}};
  Replayer::Checkpoint checkpoint = decode(file_, start, stored.state);
  checkpoint.machine.pages = saved_pages(stored.pages);
  replayer.restore(checkpoint);
}

bool Checkpoints::agrees(const Start& at, Replayer& replayer) const {
  const Replayer::Checkpoint then =
      decode(file_, at, series_[at.series].load_state(file_, at.ordinal.value()));
  return replayer.machine().position() == then.machine.position &&
         replayer.machine().save() == then.machine.cpu;
}

std::unique_ptr<Adoptions> Checkpoints::adoptions_from(const Start& start) const {
  const std::vector<Adoption>& all = series_[start.series].run().adoptions;
  if (all.empty()) return nullptr;
  return std::make_unique<Adoptions>(all, Position{start.instruction, 0});
}

std::size_t Checkpoints::count() const {
  std::size_t count = 0;
  for (const CheckpointSeries& s : series_) count += s.entries().size();
  return count;
}

std::uint64_t Checkpoints::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const CheckpointSeries& s : series_) bytes += s.stored_bytes();
  return bytes;
}

CheckpointTaker::CheckpointTaker(const Recording& recording, const Options& options)
    : recording_(recording), options_(options), writer_(initial_pages_of(recording)) {
  if (options.every == 0)
    throw UsageError("checkpoints need a spacing of at least one instruction");
  every_ = next_ = options.every;
}

void CheckpointTaker::start_over() {
  writer_ = CheckpointSeriesWriter(initial_pages_of(recording_));
  every_ = next_ = options_.every;
}

void CheckpointTaker::take(const Replayer& replayer) {
  const Replayer::Checkpoint checkpoint = replayer.checkpoint();
  writer_.add(next_, encode_checkpoint_state(checkpoint), stored_pages(checkpoint));
  while (writer_.stored_bytes() > options_.max_bytes && writer_.size() > 0) {
    writer_.thin_out();
    every_ *= 2;
  }
  next_ = (next_ / every_ + 1) * every_;
}

void CheckpointTaker::append_to(const std::string& path, Position end,
                                std::vector<Adoption> adoptions,
                                const std::optional<Hash128>& recording) {
  RecordingAppender archive(path, recording);
  writer_.append_to(archive, {replay_identity(), end, std::move(adoptions)});
  archive.finish();
}

}  // namespace citcat
