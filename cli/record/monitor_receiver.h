#pragma once
// Receives what the monitor in an emulator sends, and writes it to files.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/import/native_stream.h"
#include "cli/console.h"
#include "cli/record/emulator_command.h"
#include "events/recording.h"
#include "formats/captures/record_store.h"
#include "formats/io/byte_sink.h"
#include "formats/records/record_unpacker.h"

namespace citcat {

/// Kept free on the device: what the compressor still holds must find room when recording stops.
inline constexpr std::uint64_t kDiskReserve = std::uint64_t{16} << 20;
/// Bytes that can still be written beside `path`. A device that does not say has room.
std::uint64_t free_space(const std::string& path);
/// Less than kDiskReserve of it.
bool is_nearly_full(const std::string& path);
/// The first of these beside which there is less; nullopt where all have room.
std::optional<std::string> nearly_full(std::initializer_list<std::string> paths);

/// Both streams of the monitor: bus records, and lines about the run and about values that cross no
/// bus. A file is made when the first of its content comes.
class MonitorReceiver {
 public:
  /// Records go to the file `output`, values that cross no bus to `internal`; of several processors
  /// to the file of each (side_file_of()), and what the records are like is said at their head.
  /// Records of one processor are stored as they come where is_record_store() says so.
  MonitorReceiver(const RecordArguments& capture, const Console& console);

  /// Takes what can be read now of the records. False at the end of the stream.
  bool take_data(int fd);
  /// The same of the lines.
  bool take_control(int fd);
  /// Completes the files, with a mark where the ending is an interrupted one. Returns false when
  /// nothing was recorded.
  bool finish(Ending ending);

  std::uint64_t records() const;
  /// Instructions since recording began, as far as the records tell.
  std::uint64_t instructions() const;
  bool failed() const { return failed_; }
  /// There is no room left beside this file, which the emulator writes: as if it were an output.
  void end_for_full(const std::string& path) { full_ = path; }
  /// No more records are taken: the rest of the device is needed to complete the files.
  bool disk_full() const { return full_.has_value(); }
  /// The file beside which there is no room left; needs disk_full().
  const std::string& full_file() const { return *full_; }
  /// What the monitor said at its end, by name; empty as long as it has not.
  const std::map<std::string, std::string>& totals() const { return totals_; }

 private:
  bool takes_chunks() const { return !several(); }
  void take_chunk(std::span<const std::uint8_t> chunk);
  void take_part_of_chunk();
  bool has_begun() const { return records_ || store_; }
  void check_room() { full_ = nearly_full({output_, internal_}); }
  void count(std::uint64_t records, std::uint64_t first, std::uint64_t last);
  void keep(std::span<const std::uint8_t> records);
  void write_mark(Ending ending);
  void take_line(std::string_view line);
  ByteSink& values(unsigned processor);
  void write_text(unsigned processor, const std::string& text);
  bool several() const { return values_.size() > 1; }
  void take_value_of_one(const std::string& text);

  const Console& console_;
  std::string output_, internal_;
  std::string cache_;
  std::unique_ptr<ByteSink> records_;
  std::optional<RecordStore> store_;  ///< in place of records_
  // One processor sends chunks of packed records.
  RecordUnpacker unpacker_;
  std::vector<std::uint8_t> unpacked_;
  std::optional<NativeStream> native_;             ///< of several processors
  std::vector<std::unique_ptr<ByteSink>> values_;  ///< by processor
  std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(1 << 20);
  std::size_t held_ = 0;  ///< bytes of an unfinished record or chunk, at the front of the buffer
  std::string line_;
  std::uint64_t count_ = 0;                   ///< of records
  std::optional<std::uint64_t> first_count_;  ///< of instructions, and the last one
  std::uint64_t last_count_ = 0;
  bool failed_ = false;
  std::optional<std::string> full_;
  std::map<std::string, std::string> totals_;
};

}  // namespace citcat
