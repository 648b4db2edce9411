#pragma once
// Reads the part of one processor from a capture of several, as if it had been captured alone. Its
// own transactions are numbered from 0; the clock is common to all processors.

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/bus_record.h"
#include "capture/import/dump_window.h"
#include "capture/import/lone_counts.h"
#include "capture/import/processor_records.h"
#include "capture/import/record_capture.h"
#include "capture/import/register_accesses.h"
#include "events/processors/bus_note.h"

namespace citcat {

/// Facts about all processors that are found while the capture is read.
struct SharedBusFacts {
  std::bitset<kMostProcessors> processors;  ///< that drove something
  std::vector<BusNote> notes;               ///< of the processor that is read, in bus order
  std::vector<BusNote> of_others;           ///< of other bus masters than processors
  /// A clock fell, so that what was first is not known. The record's number in the file.
  std::optional<std::uint64_t> falls;
  bool shows_sharing = false;  ///< HIT#, LOCK# and invalidations
  /// The last instruction of the processor that is read which may have been made before the end.
  std::uint64_t reach = 0;
};

class ProcessorCapture final : public CaptureReader {
 public:
  ProcessorCapture(std::string format, RecordDialect dialect, std::unique_ptr<RecordFile> file,
                   const CaptureOptions& options, unsigned processor);

  const CaptureInfo& info() const override { return info_; }
  bool next(BusTransaction& out) override;
  /// The state after INIT and SIPI, for a processor that they start before its first instruction.
  std::optional<CpuState> initial_state() const override { return state_; }

  /// Complete when next() has returned false.
  const SharedBusFacts& facts() const { return facts_; }

 private:
  bool read_record(ProcessorRecord& out);
  bool read_any_record(ProcessorRecord& out);
  void give_address(ProcessorRecord& record) const;
  void follow_clock(const ProcessorRecord& record);
  void check_own(const ProcessorRecord& record);
  void check_line(const BusRecord& record);
  void read_beginning();
  bool is_beginning(const ProcessorRecord& record);
  void require_records() const;
  void give(const ProcessorRecord& record);
  void settle();
  void give_own(const ProcessorRecord& record);
  void give(BusTransaction t);
  void give_rest();
  std::uint64_t reach() const;
  void close();
  [[noreturn]] void fail(const std::string& wrong) const;

  std::unique_ptr<RecordFile> file_;
  RecordDialect dialect_;
  CaptureInfo info_;
  std::uint8_t processor_ = 0;
  BusRecordFields fields_;
  bool width_declared_ = false, cache_declared_ = false, cache_given_ = false;
  BusRecordDecoder decoder_;
  RegisterAccesses accesses_;
  std::span<const std::uint8_t> records_;
  std::size_t first_ = 0;  ///< ordinal of the first of `records_` within what was read
  std::uint64_t record_ = 0, clock_ = 0, own_clock_ = 0, index_ = 0;
  std::uint64_t last_instruction_ = 0;
  std::uint64_t upper_ = 0;  ///< ProcessorRecord::upper
  std::uint32_t last_clock_ = 0;
  std::uint8_t last_agent_ = kNoProcessor;
  std::uint64_t shown_clock_ = 0;  ///< that of the last record, as handed out
  std::uint64_t ties_ = 0, first_tie_ = 0;
  bool at_end_ = false, any_ = false, is_note_last_ = false;
  std::optional<bool> waits_;      ///< for a SIPI, where it is known
  std::optional<BusRecord> half_;  ///< of a line, whose other half may come next
  bool has_halves_ = false;        ///< lines are two records
  LoneCounts lone_;
  std::uint64_t lone_counts_ = 0, first_lone_ = 0;
  std::deque<BusTransaction> ready_;
  DumpFinder dump_;
  bool has_init_ = false;
  std::optional<std::uint8_t> startup_;
  std::optional<CpuState> state_;
  SharedBusFacts facts_;
};

int detect_processor_records(const CaptureProbe& probe);
/// One processor's share, which the format names: "machine-smp:1", "native:1". UsageError where it
/// names none.
std::unique_ptr<CaptureReader> open_processor_records(const std::vector<std::string>& paths,
                                                      const CaptureOptions& options);
/// Whether a capture is one of several processors, in whatever format, and the format names none.
bool shows_processors(const std::vector<std::string>& paths, const CaptureOptions& options);
/// CaptureOptions::format for the share of one. UsageError for a capture of one processor.
std::string format_of_processor(const std::string& path, const CaptureOptions& options,
                                unsigned processor);
/// The share of one.
std::unique_ptr<ProcessorCapture> open_processor_capture(const std::vector<std::string>& paths,
                                                         const CaptureOptions& options,
                                                         unsigned processor);

}  // namespace citcat
