#pragma once
// Predicting the next record of a KT trace from those before it. A trace repeats itself: the same
// instruction has the same bytes, is mostly followed by the same instruction, and uses addresses
// that follow from registers, which follow from earlier addresses. A correct prediction costs a
// small fraction of a bit.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/range_coder.h"
#include "formats/kt/kt.h"

namespace citcat {

/// The decoded data differ from what was encoded. The caller knows which file they are in.
class DamagedSegment : public FormatError {
 public:
  DamagedSegment() : FormatError("stored KT", 0, "expected a record, found damaged data") {}
};

/// The model, run alike by the encoder and the decoder. Both see whole records: the encoder the one
/// to code, the decoder the room for it.
class KtModel {
 public:
  /// Makes the model for records of that form.
  static std::unique_ptr<KtModel> make(KtForm form);
  virtual ~KtModel() = default;

  /// Bytes beyond the end of a record that code() may read or write.
  static constexpr std::size_t kSlack = 48;
  /// More distinct instructions than this end a segment.
  static constexpr std::size_t kMaxTemplates = std::size_t{1} << 20;

  /// What coding a stretch of records gave.
  struct Coded {
    std::size_t bytes = 0;
    std::uint64_t records = 0, instructions = 0;
  };
  /// Codes records, the first at the beginning of `records`, as long as they begin among its first
  /// `size` bytes, after which there are kSlack more, `most` of them are not instructions yet, and
  /// there is room for another instruction's template.
  virtual Coded encode(RangeEncoder& coder, std::span<const std::uint8_t> records, std::size_t size,
                       std::uint64_t most) = 0;
  /// Decodes records to `room`, the next one after the bytes that are `done`, until that are
  /// `most` records, or `size` bytes, after which there are kSlack more. Throws DamagedSegment for
  /// what no encoder writes: until there, it is done.
  virtual void decode(RangeDecoder& coder, std::span<std::uint8_t> room, std::size_t size,
                      std::uint64_t most, Coded& done) = 0;

  /// How many times in a row an instruction that does not branch was followed as foreseen. These
  /// are most of a trace; only the lengths of such runs are coded, apart from everything else, as
  /// varints. The encoder writes the run that just ended and counts it.
  const ByteWriter& runs() const { return runs_; }
  std::uint64_t run_count() const { return run_count_; }
  /// Encoder: closes the last run.
  void finish_runs() { write_run(); }
  /// Decoder: where the runs are, which stay with their owner. Each is read when it is needed, so
  /// that they take no more memory than they are stored in.
  void read_runs_from(ByteReader runs) { runs_to_read_ = std::move(runs); }
  /// There is no room for the template of another instruction: the segment ends here.
  bool is_full() const { return full_; }

 protected:
  void write_run() {
    runs_.varint(std::exchange(run_, 0));
    ++run_count_;
  }

  ByteWriter runs_;
  std::uint64_t run_count_ = 0;
  ByteReader runs_to_read_{{}, ""};
  std::uint64_t run_ = 0;
  bool has_run_ = false;
  bool full_ = false;
};

}  // namespace citcat
