#pragma once
// All recordings of a capture in one archive.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "capture/import/importer.h"
#include "events/archive/recording_file.h"

namespace citcat {

/// An analyser that filled up, was emptied and started again: positions begin again, what happened
/// in between is not known, and each part that has a state of its own can be replayed.
class SegmentedImport {
 public:
  /// `files`: how many the capture has, as an analyser leaves them that is emptied again and again.
  /// Nothing is owned.
  SegmentedImport(CaptureReader& reader, const ImportOptions& options, std::size_t files,
                  RecordingFileWriter& archive)
      : options_(options), files_(files), stream_(reader, options.progress), archive_(archive) {}

  /// Once. Closes the archive. FormatError when no part has a state.
  ImportResult run();

 private:
  struct Part {
    std::unique_ptr<Importer> importer;
    Recording recording;
  };

  void import_segment();
  void finish(std::size_t number, ImportResult& result);
  std::string name() const;

  const ImportOptions& options_;
  std::size_t files_;
  TransactionStream stream_;
  RecordingFileWriter& archive_;
  std::vector<Part> parts_;
  std::vector<std::string> left_out_;
  std::string missing_;  ///< why the first segment without a state has none
};

}  // namespace citcat
