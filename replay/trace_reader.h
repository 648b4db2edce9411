#pragma once
// A trace read as if it were stored: record by record, from a recording that is replayed on the way
// or from a KT file.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>

#include "events/position.h"
#include "formats/error.h"
#include "formats/kt.h"

namespace citcat {

/// The replay of a recording left what the recording knows of the run: there is no trace from here.
class TraceDiverged : public Error {
 public:
  using Error::Error;
};

/// A record and where in the run it stands.
struct TraceRecord {
  KtRecord record;
  /// Of an instruction: instructions completed before it, and iterations of its REP. Of another
  /// record: of the instruction it precedes. KT files do not tell iterations apart: there every
  /// record of an instruction counts.
  Position position;
};

struct TraceReaderOptions {
  bool offsets = false;          ///< of a recording: offsets in CS, not linear addresses
  bool process_records = false;  ///< of a recording: PID and MMU records too
  /// Of a recording: compare with evidence or digests. From a checkpoint on there is no comparison
  /// but with later checkpoints; what made them compared.
  bool check = true;
  bool use_checkpoints = true;
};

/// Reads a trace. Memory does not grow with its length.
class TraceReader {
 public:
  /// `path` is a recording or KT in any compression. Throws FormatError, IoError.
  explicit TraceReader(const std::string& path, const TraceReaderOptions& options = {});
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;

  /// False at the end. Throws FormatError for a damaged file and TraceDiverged.
  bool next(TraceRecord& out);
  /// What next() reads then is the first record of instruction `instruction` (or the end, when the
  /// run is shorter). Fast where the recording has checkpoints, or the KT file an index.
  void seek(std::uint64_t instruction);
  /// Instructions of the run up to where it was read, those skipped among them: when next() has
  /// returned false, all there are.
  std::uint64_t instructions() const;

  /// For `for (const TraceRecord& record : reader)`: the records from here on.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = TraceRecord;
    using difference_type = std::ptrdiff_t;
    using pointer = const TraceRecord*;
    using reference = const TraceRecord&;

    explicit Iterator(TraceReader* reader) : reader_(reader) { ++*this; }
    reference operator*() const { return record_; }
    pointer operator->() const { return &record_; }
    Iterator& operator++() {
      if (!reader_->next(record_)) reader_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return reader_ == nullptr; }

   private:
    TraceReader* reader_;
    TraceRecord record_;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

  /// Where the records come from.
  class Source {
   public:
    virtual ~Source() = default;
    virtual bool next(TraceRecord& out) = 0;
    virtual void seek(std::uint64_t instruction) = 0;
    virtual std::uint64_t instructions() const = 0;
  };

 private:
  std::unique_ptr<Source> source_;
};

}  // namespace citcat
