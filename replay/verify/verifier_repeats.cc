// Iterations of repeated strings, compared many at a time where a processor without a write-back
// cache makes them: each of their stores is on the bus.
//
// As of blocks, only what is plainly right is taken (verifier_blocks.cc). The iteration behind that
// is told alone.

#include <cstring>

#include "replay/machine/string_iterations.h"
#include "replay/verify/verifier.h"

namespace citcat {

std::uint32_t Verifier::agreed_iterations(const StringIterations& run, Position first) {
  if (!may_take_iterations(first)) return 0;
  reads_->reach(first.iteration);
  StringIterations taken = run;
  taken.count = reads_->plain_iterations(run, machine_->memory());
  std::size_t writes = 0;
  if (!run.stored.empty()) writes = count_stores(taken, first.instruction);
  if (taken.count == 0) return 0;
  reads_->pass_iterations(taken, machine_->memory());
  for (std::size_t i = 0; i < writes; ++i) write_agreed(writes_[i].t);
  writes_.drop_front(writes);
  return taken.count;
}

/// Iterations before `first` have been compared, all that the bus shows of the instruction is
/// known, and so is what of it belongs to which iteration.
bool Verifier::may_take_iterations(Position first) const {
  if (!plain_ || beyond_ || reads_ == nullptr || out_of_order_ || !starts_.empty()) return false;
  if (recording_.bus.form == CacheForm::write_back || first.instruction == interrupted_)
    return false;
  return reads_->instruction() == first.instruction && has_position_beyond(first);
}

/// How many writes show what iterations of `run` store, one after another; these remain in it.
std::size_t Verifier::count_stores(StringIterations& run, std::uint64_t instruction) const {
  const std::uint32_t most = run.count * run.size;
  std::uint32_t done = 0;
  std::size_t writes = 0;
  run.count = 0;
  for (std::size_t i = 0; i < writes_.size() && done < most; ++i) {
    const PendingWrite& w = writes_[i];
    const bool next = w.t.position.instruction == instruction && w.t.address == run.to + done;
    if (!next || w.unmatched != all_bytes(w.t.size) || w.t.size > most - done ||
        std::memcmp(w.t.data.data(), &run.stored[done], w.t.size) != 0) {
      break;
    }
    done += w.t.size;
    if (done % run.size != 0) continue;
    run.count = done / run.size;
    writes = i + 1;
  }
  return writes;
}

}  // namespace citcat
