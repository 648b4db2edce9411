#include "capture/import/import.h"

#include <algorithm>

#include "capture/import/import_reader.h"
#include "capture/import/importer.h"
#include "capture/import/segmented_import.h"
#include "events/archive/machine_file.h"
#include "events/archive/recording_file.h"
#include "events/completed_instructions.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

class CollectedEvidence final : public EvidenceWriter {
 public:
  explicit CollectedEvidence(std::vector<BusTransaction>& into) : into_(into) {}
  void write(const BusTransaction& transaction) override { into_.push_back(transaction); }

 private:
  std::vector<BusTransaction>& into_;
};

class MemoryEvidence final : public EvidenceReader {
 public:
  explicit MemoryEvidence(const std::vector<BusTransaction>& from) : from_(from) {}
  bool next(BusTransaction& out) override {
    if (next_ == from_.size()) return false;
    out = from_[next_++];
    return true;
  }
  std::span<const BusTransaction> upcoming() const override {
    return std::span(from_).subspan(next_);
  }

 private:
  const std::vector<BusTransaction>& from_;
  std::size_t next_ = 0;
};

/// `name` is that of the capture, for the message.
void require_data(const CaptureReader& reader, const std::string& name) {
  const CaptureInfo& info = reader.info();
  if (info.has_data) return;
  throw FormatError(name, 0,
                    "expected a capture with data, found format " + info.format +
                        ", which has addresses only: nothing can be replayed from it");
}

/// Whether every state that the capture carries begins a recording: nothing asks for one place.
bool wants_all(const ImportOptions& options) {
  return !options.segment && options.initial_state_path.empty() && !options.initial_state &&
         !options.start && !options.stop && options.capture.internal_path.empty();
}

/// Notes in a finished archive which changes of memory are an emulator's.
void add_told_changes(const Importer& importer, const std::string& path) {
  const RecordingFile file = RecordingFile::open(path);
  const std::vector<std::uint64_t> told = importer.told_changes(file.recording().external_writes);
  if (!told.empty()) add_edges(path, {told});
}

}  // namespace

ImportResult summarize(const Recording& recording) {
  ImportResult result;
  result.recordings = 1;
  result.format = recording.provenance.format;
  result.cpu = recording.initial.model;
  result.transactions = recording.totals.transactions;
  result.instructions = completed_instructions(recording);
  result.image_bytes = recording.image.byte_count();
  const EventCounts& handed_over = recording.handed_over;
  result.interrupts = handed_over.interrupts + recording.interrupts.size();
  result.io_reads = handed_over.io_reads + recording.io_reads.size();
  result.external_writes = handed_over.external_writes + recording.external_writes.size();
  result.ending = recording.ending;
  result.warnings = recording.warnings;
  return result;
}

void add_to(ImportResult& all, const ImportResult& one) {
  if (all.recordings == 0) {
    all = one;
    return;
  }
  ++all.recordings;
  all.transactions += one.transactions;
  if (all.instructions && one.instructions) {
    *all.instructions += *one.instructions;
  } else {
    all.instructions.reset();
  }
  all.image_bytes += one.image_bytes;
  all.interrupts += one.interrupts;
  all.io_reads += one.io_reads;
  all.external_writes += one.external_writes;
  if (!is_interrupted(all.ending)) all.ending = one.ending;
  for (const std::string& text : one.warnings) {
    if (std::find(all.warnings.begin(), all.warnings.end(), text) == all.warnings.end())
      all.warnings.push_back(text);
  }
}

void strip_provenance(Recording& recording, const CaptureInfo& capture) {
  recording.provenance = {};
  std::erase_if(recording.warnings, [&](const std::string& text) {
    return std::find(capture.warnings.begin(), capture.warnings.end(), text) !=
           capture.warnings.end();
  });
}

Recording import_from(CaptureReader& reader, const ImportOptions& options,
                      EvidenceWriter* evidence) {
  require_data(reader, "capture");
  TransactionStream stream(reader, options.progress);
  return Importer(stream, options, evidence).run();
}

ImportResult import_reader(CaptureReader& reader, const std::string& name, std::size_t files,
                           const ImportOptions& options, const std::string& out_path) {
  require_data(reader, name);
  RecordingFileWriter archive(out_path, {.evidence_level = options.level});
  if (wants_all(options)) return SegmentedImport(reader, options, files, archive).run();
  TransactionStream stream(reader, options.progress);
  Importer importer(stream, options, &archive);
  Recording recording = importer.run();
  const ImportResult result = summarize(recording);
  if (!options.provenance) strip_provenance(recording, reader.info());
  archive.finish(recording);
  if (importer.tells_changes()) add_told_changes(importer, out_path);
  return result;
}

ImportResult import_capture(const std::vector<std::string>& paths, const ImportOptions& options,
                            const std::string& out_path) {
  const std::unique_ptr<CaptureReader> reader = open_capture(paths, options.capture);
  return import_reader(*reader, paths.front(), paths.size(), options, out_path);
}

std::unique_ptr<EvidenceReader> ImportedRecording::read_evidence() const {
  return std::make_unique<MemoryEvidence>(evidence);
}

ImportedRecording import_to_memory(const std::vector<std::string>& paths,
                                   const ImportOptions& options) {
  const std::unique_ptr<CaptureReader> reader = open_capture(paths, options.capture);
  ImportedRecording imported;
  CollectedEvidence evidence(imported.evidence);
  imported.recording = import_from(*reader, options, &evidence);
  return imported;
}

}  // namespace citcat
