#pragma once
// Reads the evidence of a recording, and says up to which instruction of the replay it is known.

#include <cstdint>
#include <span>
#include <utility>

#include "events/recording.h"

namespace citcat {

/// A copy is a checkpoint; a caller that returns to it must take the reader back as well.
class EvidenceCursor {
 public:
  /// `reader` must outlive the cursor. `joins_lines`: a line is one transaction, however it went
  /// over the bus (EvidenceReader::next_line()).
  EvidenceCursor(EvidenceReader& reader, bool joins_lines)
      : reader_(&reader), joins_lines_(joins_lines) {}

  /// From now on reads here, and the next transaction once more if it is known already. `reader`
  /// gives what the one so far would give, after that transaction.
  void read_from(EvidenceReader& reader) {
    reader_ = &reader;
    if (std::exchange(known_, false)) read();
  }

  /// The next transaction is known.
  bool is_known() const { return known_; }
  /// Makes it known where it is not. False at the end.
  bool read() {
    if (known_) return true;
    if (at_end_) return false;
    next_ = {};
    parts_ = joins_lines_ ? reader_->next_line(next_) : std::uint8_t{reader_->next(next_)};
    known_ = parts_ != 0;
    at_end_ = !known_;
    return known_;
  }
  const BusTransaction& next() const { return next_; }
  /// What comes after it, as far as that is known already; valid until the next read().
  std::span<const BusTransaction> upcoming() const { return reader_->upcoming(); }
  /// The next transaction is memory traffic that was counted before what was taken last.
  bool goes_back() const {
    return next_.is_memory() && next_.position.instruction < taken_.instruction;
  }
  /// Takes the next transaction, which must be known; valid until the next read().
  const BusTransaction& take() {
    // Only memory traffic says how far the evidence reaches, and only when all of it is counted:
    // interrupts are often counted where nothing else is, and hardware instruction streams run
    // ahead.
    if (next_.is_memory()) {
      if (!next_.has(kPositionKnown)) all_counted_ = false;
      counted_ = all_counted_;
      taken_ = next_.position;
      ports_ = 0;
      mark_ = passed_mark_ = {};
    } else if (next_.op == BusOp::io_read || next_.op == BusOp::io_write) {
      take_port();
    }
    last_index_ = next_.index;
    known_ = false;
    return next_;
  }

  /// Which parts of the captured transaction have been taken.
  std::uint8_t parts() const { return parts_; }
  bool at_end() const { return at_end_; }
  /// All memory traffic so far carries positions, and there was some.
  bool counted() const { return counted_; }
  /// Memory traffic of a later instruction has been taken: all of this one's is known. Iterations
  /// do not order evidence: an interrupted REP starts again from zero.
  bool is_beyond(Position position) const {
    return counted_ && (taken_.instruction > position.instruction || is_beyond_by_ports(position));
  }
  /// How many counted port accesses in a row, without memory traffic between them, show the same: a
  /// processor does not delay accesses to memory past later accesses to ports (Intel SDM vol. 1,
  /// 18.6). Without this all of a program that only polls a port would be read ahead.
  static constexpr std::uint64_t kManyPorts = std::uint64_t{1} << 12;
  /// The capture ends, and has no transaction of an instruction after this one.
  bool ends_within(Position now) const {
    return at_end_ && counted_ && now.instruction >= taken_.instruction;
  }
  /// Number of the transaction taken last; kNoTransaction before the first.
  std::uint64_t last_index() const { return last_index_; }

 private:
  bool is_beyond_by_ports(Position position) const {
    return passed_mark_.instruction > position.instruction;
  }
  void take_port() {
    if (!next_.has(kPositionKnown)) {
      ports_ = 0;
      mark_ = passed_mark_ = {};
    } else if (++ports_ % kManyPorts == 0) {
      passed_mark_ = std::exchange(mark_, next_.position);
    }
  }

  EvidenceReader* reader_;
  bool joins_lines_;
  BusTransaction next_;  ///< where it is known; else the one taken last
  std::uint8_t parts_ = 1;
  bool known_ = false;
  bool at_end_ = false;
  bool counted_ = false;
  bool all_counted_ = true;
  Position taken_;           ///< of the transaction taken last that is of memory
  std::uint64_t ports_ = 0;  ///< counted accesses to ports taken since then
  /// Positions of the last port read whose number is a multiple of kManyPorts, and of the one that
  /// many before it.
  Position mark_, passed_mark_;
  std::uint64_t last_index_ = kNoTransaction;
};

}  // namespace citcat
