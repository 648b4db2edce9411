#pragma once
// A recorded run instruction by instruction, and which ones belong to handlers of interrupts.

#include <cstdint>
#include <memory>

#include "sql/rows/row_source.h"

namespace citcat::sql {

class PlainRun {
 public:
  /// From the first instruction at or after `from`, which is current then. `source` must outlive
  /// the object.
  PlainRun(RowSource& source, std::uint64_t from);
  ~PlainRun() { source_.remove_reader(); }
  PlainRun(const PlainRun& other)
      : source_(other.source_),
        stretch_(other.stretch_),
        run_(other.run_),
        end_(other.end_),
        in_run_(other.in_run_),
        outer_(other.outer_),
        before_(other.before_),
        ended_(other.ended_) {
    source_.add_reader();
  }
  PlainRun& operator=(const PlainRun&) = delete;

  bool ended() const { return ended_; }
  /// To the next one.
  void advance();
  /// To the first one, this or a later one, that belongs to no handler of an interrupt from
  /// outside that has come since the run's beginning.
  void leave_interrupt() {
    while (!ended_ && in_interrupt()) advance();
  }

  /// Where an interrupt is delivered before the first instruction: its handler counts as one that
  /// has come since the run's beginning. For the first instruction only.
  void count_first_interrupt() { outer_ = before_; }

  // The current instruction.
  std::uint64_t position() const { return run_->first + in_run_; }
  const tools::StaticInstruction& instruction() const { return run_->code->block()[in_run_]; }
  const CodeText& text() const { return run_->code->text(in_run_); }
  bool in_interrupt() const { return run_->interrupts > outer_; }
  const ContextTable::Entry& context() const { return source_.contexts()[run_->context]; }

 private:
  void enter();

  RowSource& source_;
  std::shared_ptr<const Stretch> stretch_;
  const InstructionRun* run_ = nullptr;
  const InstructionRun* end_ = nullptr;
  std::uint32_t in_run_ = 0;
  /// Handlers that the run began in and has not left: whether it did may not be known.
  std::uint32_t outer_ = ~0u;
  std::uint32_t before_ = 0;  ///< those that were open before the first instruction was reached
  bool ended_ = false;
};

}  // namespace citcat::sql
