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
  /// When the capture shows what the replay does not do; nullopt where nothing tells.
  std::optional<std::uint64_t> clock() const { return clock_; }

 private:
  std::string reason_;
  std::optional<std::uint64_t> clock_;
};

/// A record and where in the run it stands, or something that happened there.
struct TraceRecord {
  KtRecord record;  ///< unless `is_event`
  /// For an instruction: instructions completed before it, and iterations of its REP. Of another
  /// record: of the instruction it precedes. The recording's, or that of a file's notes; of KT
  /// without notes it counts from the file's first record and is derived (KtCounter).
  Position position;
  /// Default size of the instruction's code segment, 16 or 32, or 64 in 64-bit mode; 0: nothing
  /// tells, as in KT without notes. Where it is told, positions are the recording's.
  std::uint8_t bits = 0;
  bool is_event = false;
  KtNote event = {};  ///< where `is_event`; no place
  /// With TraceReaderOptions::clocks: clock of the capture at which the bus began to show it.
  std::optional<std::uint64_t> clock = std::nullopt;
};

struct TraceReaderOptions {
  bool offsets = false;  ///< of a recording: offsets in CS, not linear addresses
  /// For a recording: also PID and MMU records; at the beginning and after seek() those for the
  /// process and the translations of that moment.
  bool process_records = false;
  /// For a compressed KT file from a pipe: its notes lie behind the records they describe, so it is
  /// copied to a temporary file first. Without, it is read as it comes and positions are derived.
  bool notes = true;
  /// For processors with long mode: the reader of the trace takes 64-bit addresses
  /// (KtInstruction::wide_eip()). Otherwise such traces are refused.
  bool wide = false;
  bool events = false;  ///< what happened between instructions, where recording or file tell it
  /// For a recording: compare with evidence or digests. After seek() to a checkpoint only later
  /// checkpoints are compared; the replay that took them was compared.
  bool check = true;
  bool use_checkpoints = true;
  /// For a recording that is to be compared: from this instruction on it is no longer compared one
  /// instruction at a time. It is verified as a whole then, which takes a fraction of the time, and
  /// that is remembered in the archive, where it can be written: from the next time on it is fast
  /// from the beginning (replay/run/verified_run.h). Not with `use_checkpoints` false.
  std::uint64_t verify_after = std::uint64_t{1} << 20;
  /// For a recording whose evidence has clocks: say when the bus showed what. It is compared from
  /// the beginning for that, instruction by instruction. UsageError where nothing tells clocks.
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

  /// Null at the end. What it points to stays until the reader is asked for anything else. Throws
  /// FormatError for a damaged file and TraceDiverged.
  const TraceRecord* next() { return source_->next(); }
  /// The same, copied; false at the end.
  bool next(TraceRecord& out);
  /// Makes next() read the first record of instruction `instruction` (or return false, when the run
  /// is shorter). Fast where the recording has checkpoints, or the KT file an index.
  void seek(std::uint64_t instruction) { seek(Position{instruction, 0}); }
  /// The same, of an iteration of a REP.
  void seek(Position position);

  /// Where the trace goes on behind what next() read last; at the end, where it ends. A KT file
  /// without notes does not tell whether a REP that it ends in was done: it is thought not to be.
  Position position() const;
  /// Instructions of the run up to where it was read, those skipped among them: when next() has
  /// returned false, all there are.
  std::uint64_t instructions() const { return position().instruction; }
  /// It is one of 64 bits; known once next() has returned true.
  bool is_wide() const { return source_->is_wide(); }
  /// Clocks a second; 0 where nobody tells.
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

  /// Where the records come from.
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
