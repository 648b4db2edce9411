#include "capture/import/segmented_import.h"

#include <optional>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

ImportResult SegmentedImport::run() {
  do {
    import_segment();
  } while (stream_.next_segment());
  if (parts_.empty()) throw FormatError(name(), 0, missing_);
  ImportResult result;
  for (std::size_t i = 0; i < parts_.size(); ++i) finish(i, result);
  if (parts_.size() > 1)
    result.warnings.push_back(std::to_string(parts_.size()) +
                              " recordings: nothing is known of what happened between them");
  for (const std::string& text : left_out_) result.warnings.push_back(text);
  archive_.close();
  return result;
}

/// A driver may stop and dump again while the analyser runs on.
void SegmentedImport::import_segment() {
  const std::size_t before = parts_.size();
  do {
    archive_.select(parts_.size());
    auto importer = std::make_unique<Importer>(stream_, options_, &archive_);
    std::optional<Recording> recording = importer->run_next(stream_.segment() + 1 < files_);
    if (!recording) {
      if (missing_.empty()) missing_ = importer->missing_dump();
      break;
    }
    parts_.push_back({std::move(importer), std::move(*recording)});
  } while (!stream_.at_end() && !stream_.initial_state());
  if (before != parts_.size()) return;
  left_out_.push_back("segment " + std::to_string(stream_.segment()) +
                      " has no state dump: it is left out");
}

void SegmentedImport::finish(std::size_t number, ImportResult& result) {
  Part& part = parts_[number];
  part.importer->fill_in(part.recording);
  add_to(result, summarize(part.recording));
  if (parts_.size() > 1) {
    part.recording.warnings.push_back("recording " + std::to_string(number) + " of " +
                                      std::to_string(parts_.size()) +
                                      ": nothing is known of what happened between them");
  }
  if (!options_.provenance) strip_provenance(part.recording, stream_.info());
  archive_.select(number);
  archive_.add(part.recording);
}

std::string SegmentedImport::name() const {
  return stream_.info().files.empty() ? "capture" : stream_.info().files.front().name;
}

}  // namespace citcat
