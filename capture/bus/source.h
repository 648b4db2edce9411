#pragma once
// The seam between captures and everything that uses them: whatever a person recorded — pins by a
// logic analyser, records of a hardware collector, a driver's file — comes out of a CaptureReader
// as one stream of BusTransactions in bus order. The formats are one table, in format_list.cc.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "events/access_run.h"
#include "events/bus_transaction.h"
#include "events/event_count.h"
#include "events/machine/cpu_state.h"
#include "events/recording.h"

namespace citcat {

/// What a capture says of itself. `warnings`, `ending` and the hashes in `files` are complete when
/// the reader has returned false; the rest is known as soon as the capture is open.
struct CaptureInfo {
  std::string format;  ///< identifier in the table of formats, e.g. "sigrok"
  /// In a capture of several processors, the one that is read, and its first record, in words;
  /// otherwise empty.
  std::string share;
  CpuModel cpu = CpuModel::unknown;         ///< as captured or as the caller declared
  std::uint32_t address_mask = 0xffffffff;  ///< physical address bits that were captured
  /// What positions count. Of others than instructions only those of acknowledges mean anything.
  CountUnit counts = CountUnit::instructions;
  bool has_positions = false;   ///< events carry kPositionKnown wherever it is exact
  bool has_data = true;         ///< false: addresses only, which cannot be replayed
  bool has_clock = false;       ///< transactions carry kClockKnown
  double clock_hz = 0;          ///< their clocks a second: the sample rate; 0 if it is not known
  BusModel bus;                 ///< bus.address_mask equals address_mask
  bool width_inferred = false;  ///< bus.bus_bytes is what the transactions so far show
  bool cache_inferred = true;   ///< so are form and line of the cache; else declared
  /// How the segment read last ended: interrupted, or at the end of the capture.
  Ending ending = Ending::capture_end;
  /// How far the processor had come where the segment read last ends, in what positions count; only
  /// where the capture says so. Known when the segment has been read.
  std::optional<Position> reached;
  std::vector<std::string> warnings;    ///< one line each, for people
  std::vector<Provenance::File> files;  ///< in the order given
};

/// For callers that need positions to be instruction counts: drops counts of anything else.
inline void drop_count(const CaptureInfo& info, BusTransaction& t) {
  if (info.counts == CountUnit::instructions) return;
  t.flags &= static_cast<std::uint16_t>(~kPositionKnown);
  t.position = {};
}

/// The warning of a capture without data.
inline constexpr std::string_view kAddressesOnly =
    "addresses only: the format holds no data, so that nothing can be replayed from it";

/// A capture being read, from first to last transaction. Memory does not grow with its length.
class CaptureReader {
 public:
  virtual ~CaptureReader() = default;
  CaptureReader() = default;
  CaptureReader(const CaptureReader&) = delete;
  CaptureReader& operator=(const CaptureReader&) = delete;

  virtual const CaptureInfo& info() const = 0;

  /// The next transaction of this segment. False at its clean end; FormatError where the input is
  /// not what its format says or ends inside a record.
  virtual bool next(BusTransaction& out) = 0;

  /// next() for as many transactions as fit or are available; returns how many, 0 only at the end.
  /// An error is thrown only after all transactions before it were returned.
  virtual std::size_t next_block(std::span<BusTransaction> out) {
    return !out.empty() && next(out.front()) ? 1 : 0;
  }

  /// Whether run() can return runs, because the transactions are in memory as records. Reading such
  /// a capture is cheaper than passing it between threads.
  virtual bool has_runs() const { return false; }
  /// The next transactions, as far as they are a run, without going beyond them; they come again
  /// until take_run(). Empty where the next one is of another sort, and where next() returns false.
  virtual AccessRun run() { return {}; }
  /// Consumes the run that run() returned last.
  virtual void take_run(const AccessRun& /*run*/) {}

  /// After next() returned false: goes on to the following segment of an analyser that was drained
  /// and started again. False when there is none. Indexes go on; positions start again from zero,
  /// and nothing is known of what happened between two segments.
  virtual bool next_segment() { return false; }

  /// The processor state the capture itself carries for the first transaction of the segment (a
  /// single-step test, a dump by the driver), if it carries one.
  virtual std::optional<CpuState> initial_state() const { return std::nullopt; }
};

/// How to read a capture. Every field has a default: what the capture itself says.
struct CaptureOptions {
  std::string format;                ///< identifier of the format; "" decides by content
  CpuModel cpu = CpuModel::unknown;  ///< overrides what the capture says or suggests
  std::string channel_map_path;      ///< JSON file, see docs/channel-maps.md; "" uses the presets
  std::string internal_path;         ///< values that cross no bus (`--internal`), "" when none
  std::optional<CacheForm> cache;    ///< declares the cache of the captured machine
};

/// What detection looks at: the beginning of a capture, after decompression.
struct CaptureProbe {
  std::string_view name;                 ///< file name without folders and compression suffix
  std::span<const std::uint8_t> prefix;  ///< up to kProbeBytes; empty for a directory
  std::string path;                      ///< as given
  bool is_directory = false;
  std::uint64_t file_bytes = 0;  ///< size of the file as stored; 0 when unknown (a pipe)
};
inline constexpr std::size_t kProbeBytes = 65536;

/// One row of the table of formats.
struct CaptureFormat {
  std::string_view id;           ///< for --format
  std::string_view description;  ///< one line
  /// 0: certainly not; 100: certainly (a magic number and a checked structure).
  int (*detect)(const CaptureProbe& probe);
  /// nullptr for files of pin levels, which open_capture_with_cycles() opens.
  std::unique_ptr<CaptureReader> (*open)(const std::vector<std::string>& paths,
                                         const CaptureOptions& options) = nullptr;
};

/// All formats, in the order in which detection prefers them when confidences are equal.
std::span<const CaptureFormat> capture_formats();

/// The format with this identifier, or nullptr. "csv" is short for "samples-csv".
const CaptureFormat* find_capture_format(std::string_view id);

/// The format the content speaks for most, or nullptr when no format wants it. Throws IoError when
/// the path cannot be read, FormatError when what compressed it finds it damaged.
const CaptureFormat* detect_capture_format(const std::string& path);

/// The format that `options` name, or else the one that the content of `path` speaks for. Throws as
/// open_capture().
const CaptureFormat& capture_format_of(const std::string& path, const CaptureOptions& options);

/// Opens one or several files (segments, or the channels of one capture) as one capture. Throws
/// UsageError for an unknown format name, FormatError when nothing recognises the content or the
/// capture is not of an x86 bus, IoError when a file cannot be read.
std::unique_ptr<CaptureReader> open_capture(const std::vector<std::string>& paths,
                                            const CaptureOptions& options);

}  // namespace citcat
