#pragma once
// Captures made of bus records: one CaptureReader for all their file forms (headerless binary,
// native, CSV), which differ only in how a record is read.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/bus_record.h"
#include "formats/io/input.h"

namespace citcat {

/// What a file of records declares about the machine, where its form has a place for it.
struct RecordDeclaration {
  CpuModel cpu = CpuModel::unknown;
  BusModel bus;
  bool width_declared = false;  ///< false: any bus width is believed, and inferred
  bool cache_declared = false;  ///< false: the cache is inferred from the records
  bool has_positions = true;
  bool has_clock = true;
  double clock_hz = 0;   ///< clocks a second; 0: not known
  bool has_data = true;  ///< false: the data of the records are no data
  /// For several processors: HIT#, LOCK# and invalidations of lines are shown.
  bool shows_sharing = false;
};

/// One file of records, from first to last.
class RecordFile {
 public:
  explicit RecordFile(std::unique_ptr<InputStream> input) : input_(std::move(input)) {}
  virtual ~RecordFile() = default;
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  /// The next records as their 40 bytes each, which need not make sense; valid until the next call.
  /// Empty at the clean end; FormatError for a file that ends early or is not of this form.
  virtual std::span<const std::uint8_t> next() = 0;
  /// For messages: offset or line of the `index`-th record that next() returned last.
  virtual std::uint64_t where(std::size_t index) const = 0;

  /// Whether next() returns what is in the file.
  virtual bool is_stored_so() const { return input_->compression() == Compression::none; }

  const RecordDeclaration& declaration() const { return declaration_; }
  const InputStream& input() const { return *input_; }

 protected:
  std::unique_ptr<InputStream> input_;
  RecordDeclaration declaration_;
};

/// Makes a RecordFile of a stream.
using RecordFileMaker =
    std::function<std::unique_ptr<RecordFile>(std::unique_ptr<InputStream> input)>;

/// A capture of one or several such files, each a segment. `format` is its identifier.
std::unique_ptr<CaptureReader> open_record_capture(std::string format,
                                                   const std::vector<std::string>& paths,
                                                   const CaptureOptions& options,
                                                   RecordFileMaker make);
/// The same from a stream already open.
std::unique_ptr<CaptureReader> open_record_stream(std::string format,
                                                  std::unique_ptr<InputStream> input,
                                                  const CaptureOptions& options,
                                                  RecordFileMaker make);

/// How sure a headerless run of binary records looks: 0 when `prefix` does not begin with whole
/// valid records, else up to `most`.
int rate_bus_records(std::span<const std::uint8_t> prefix, int most);

}  // namespace citcat
