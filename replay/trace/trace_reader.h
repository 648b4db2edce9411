#pragma once
// Reads a trace record by record: from a KT file, or from a recording, which is replayed as the
// reader goes on.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "events/position.h"
#include "formats/io/error.h"
#include "formats/kt/kt_note.h"
#include "formats/kt/kt_record.h"

namespace citcat {

/// The replay of a recording has diverged: there is no trace from here on.
class TraceDiverged : public Error {
 public:
  TraceDiverged(const std::string& message, std::string reason, std::optional<std::uint64_t> clock)
      : Error(message), reason_(std::move(reason)), clock_(clock) {}
  const std::string& reason() const { return reason_; }
  /// The clock at which the capture shows the difference; nullopt if the capture has no clocks.
  std::optional<std::uint64_t> clock() const { return clock_; }

 private:
  std::string reason_;
  std::optional<std::uint64_t> clock_;
};

/// A record with its position in the run, or an event with its position.
struct TraceRecord {
  KtRecord record;  ///< unless `is_event`
  /// For an instruction: instructions completed before it, and iterations of its REP. For another
  /// record: the position of the instruction after it. Positions come from the recording or from
  /// the notes of the file; for KT without notes they are derived, from the file's first record on
  /// (KtCounter).
  Position position;
  /// Default size of the instruction's code segment, 16 or 32, or 64 in 64-bit mode; 0 if it is not
  /// known, as in KT without notes. If it is known, positions are those of the recording.
  std::uint8_t bits = 0;
  bool is_event = false;
  KtNote event = {};  ///< if `is_event`; never Kind::place
  /// With TraceReaderOptions::clocks: clock of the capture at which the bus began to show it.
  std::optional<std::uint64_t> clock = std::nullopt;
};

struct TraceReaderOptions {
  bool offsets = false;  ///< for a recording: offsets in CS instead of linear addresses
  /// For a recording: give PID and MMU records too. At the beginning and after seek() they describe
  /// the process and the translations of that moment.
  bool process_records = false;
  /// Use the notes of a KT file. They come after the records that they describe, so a compressed
  /// file from a pipe is first copied to a temporary file. Without notes the file is read as it
  /// comes, and positions are derived.
  bool notes = true;
  /// For processors with long mode: the reader of the trace takes 64-bit addresses
  /// (KtInstruction::wide_eip()). Otherwise such traces are refused.
  bool wide = false;
  bool events = false;  ///< give events between instructions, if the recording or file has them
  /// For a recording: compare with evidence or digests. After seek() to a checkpoint only later
  /// checkpoints are compared; the replay that took them was compared.
  bool check = true;
  bool use_checkpoints = true;
  /// For a recording with `check`: at this instruction the reader stops comparing one instruction
  /// at a time. It verifies the whole recording instead, which takes a fraction of the time, and
  /// stores the result in the archive if it can write to it, so that later readers are fast from
  /// the beginning (replay/run/verified_run.h). Has no effect without `use_checkpoints`.
  std::uint64_t verify_after = std::uint64_t{1} << 20;
  /// For a recording whose evidence has clocks: give the clock of each record. The run is then
  /// compared from the beginning, instruction by instruction. UsageError if there are no clocks.
  bool clocks = false;
};

/// Reads a trace. Memory does not grow with its length.
class TraceReader {
 public:
  /// `path` is a recording or KT in any compression. Throws FormatError, IoError.
  explicit TraceReader(const std::string& path, const TraceReaderOptions& options = {});
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;

  /// The next record, or null at the end. The record is valid until the next call of any function
  /// of the reader. Throws FormatError for a damaged file, and TraceDiverged.
  const TraceRecord* next() { return source_->next(); }
  /// The same, copied; false at the end.
  bool next(TraceRecord& out);
  /// Makes next() return the first record of instruction `instruction`, or the end if the run is
  /// shorter. This is fast if the recording has checkpoints, or the KT file an index.
  void seek(std::uint64_t instruction) { seek(Position{instruction, 0}); }
  /// The same for an iteration of a REP.
  void seek(Position position);

  /// The position after the record that next() read last; at the end, the end of the trace. If a KT
  /// file without notes ends in a REP, the REP counts as not completed.
  Position position() const;
  /// Instructions of the run up to here, including skipped ones: all instructions once next() has
  /// returned false.
  std::uint64_t instructions() const { return position().instruction; }
  /// True for a trace of 64 bits; known once next() has returned true.
  bool is_wide() const { return source_->is_wide(); }
  /// Clocks a second; 0 if the capture does not say.
  double clock_hz() const;

  /// For `for (const TraceRecord& record : reader)`: the records from here on.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = TraceRecord;
    using difference_type = std::ptrdiff_t;
    using pointer = const TraceRecord*;
    using reference = const TraceRecord&;

    explicit Iterator(TraceReader* reader) : reader_(reader) { ++*this; }
    reference operator*() const { return *record_; }
    pointer operator->() const { return record_; }
    Iterator& operator++() {
      record_ = reader_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return record_ == nullptr; }

   private:
    TraceReader* reader_;
    const TraceRecord* record_ = nullptr;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

  /// The source of the records.
  class Source {
   public:
    virtual ~Source() = default;
    virtual const TraceRecord* next() = 0;  ///< as TraceReader::next()
    virtual void seek(Position position) = 0;
    virtual Position position() const = 0;
    virtual bool is_wide() const = 0;
    virtual double clock_hz() const { return 0; }
  };

 private:
  std::unique_ptr<Source> source_;
};

}  // namespace citcat
