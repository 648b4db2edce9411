// Matches the reads of many iterations of a repeated string at a time.

#include <algorithm>
#include <iterator>

#include "replay/machine/string_iterations.h"
#include "replay/verify/read_matcher.h"

namespace citcat {

/// The first of the iterations from iteration_ on that what the bus shows there is compared with:
/// is_later().
std::uint32_t ReadMatcher::first_concerned(const Pending& p) const {
  const std::uint32_t its = p.t.position.iteration;
  return is_later(its) ? its - 1 - iteration_ : 0;
}

/// The iteration that it belongs to, or the one before, reads from it.
bool ReadMatcher::is_read_in_place(const Pending& p, const StringIterations& run) const {
  if (p.t.op != BusOp::data_read || p.t.has(kStoreFill)) return false;
  const std::uint32_t first = first_concerned(p);
  const auto [line, bytes] = filled(p.t);
  return run.read_within(first, std::min(first + 2, run.count), line, bytes);
}

/// How many of the iterations of `run`, the first of them iteration_, read what the bus shows, as
/// touch() would find it, one by one.
std::uint32_t ReadMatcher::plain_iterations(const StringIterations& run, const Memory& memory) {
  if (uncached_) return run.count;
  for (Pending& p : pending_) {
    const std::uint32_t first = first_concerned(p);
    if (p.t.position.instruction > instruction_ || first >= run.count) break;
    const auto [line, bytes] = filled(p.t);
    const bool concerned = p.t.op == BusOp::code_read
                               ? overlap(run.code, run.code_bytes, line, bytes)
                               : run.read_within(first, run.count, line, bytes) ||
                                     run.store_within(first, run.count, line, bytes);
    if (!concerned) continue;
    // Not where they store as well: memory is compared as it is before them all.
    if (run.store_within(0, run.count, line, bytes) || !is_read_in_place(p, run) ||
        !equals(p, memory)) {
      return first;
    }
  }
  return run.count;
}

/// Iterations that plain_iterations() counted are about to be made.
void ReadMatcher::pass_iterations(const StringIterations& run, const Memory& memory) {
  if (uncached_) {
    look_at_code(memory);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      for (unsigned r = 0; r < run.reads; ++r)
        reads_.push_back({run.from[r].plus32(i * run.size), run.size});
    }
    if (!run.stored.empty()) stores_.push_back({run.to, run.count * run.size});
    return;
  }
  const auto end = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& p) {
    return p.t.position.instruction > instruction_ || first_concerned(p) >= run.count;
  });
  // What stays is moved to the end of these.
  const auto stays =
      std::remove_if(std::make_reverse_iterator(end), std::make_reverse_iterator(pending_.begin()),
                     [&](const Pending& p) {
                       const bool read = is_read_in_place(p, run);
                       if (read) compared_ += p.parts;
                       return read;
                     });
  pending_.drop_front(static_cast<std::size_t>(stays.base() - pending_.begin()));
}

}  // namespace citcat
