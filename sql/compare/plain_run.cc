#include "sql/compare/plain_run.h"

#include <algorithm>

namespace citcat::sql {

PlainRun::PlainRun(RowSource& source, std::uint64_t from) : source_(source) {
  source_.begin_statement();
  RowNeeds needs;
  needs.instructions = true;
  // Handlers are followed from the beginning on, as names of processes are.
  needs.process_names = true;
  source_.need(needs);
  source_.add_reader();
  // What came before tells handlers that the run begins in from one that is entered right there.
  stretch_ = source_.stretch_at(from == 0 ? 0 : from - 1, {});
  enter();
  std::uint32_t before = 0;
  while (!ended_ && position() < from) {
    before = run_->interrupts;
    advance();
  }
  if (ended_) return;
  outer_ = run_->interrupts;
  before_ = std::min(before, outer_);
}

/// The first instruction of the stretch, or of the next one that has any.
void PlainRun::enter() {
  in_run_ = 0;
  while (stretch_ != nullptr && stretch_->rows.instructions.empty()) {
    stretch_ = stretch_->is_last ? nullptr : source_.stretch_at(stretch_->to, {});
  }
  ended_ = stretch_ == nullptr;
  if (ended_) return;
  run_ = stretch_->rows.instructions.data();
  end_ = run_ + stretch_->rows.instructions.size();
  outer_ = std::min(outer_, run_->interrupts);
}

void PlainRun::advance() {
  if (++in_run_ < run_->code->count()) return;
  in_run_ = 0;
  if (++run_ != end_) {
    outer_ = std::min(outer_, run_->interrupts);
    return;
  }
  stretch_ = stretch_->is_last ? nullptr : source_.stretch_at(stretch_->to, {});
  enter();
}

}  // namespace citcat::sql
