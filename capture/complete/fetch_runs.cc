#include "capture/complete/fetch_runs.h"

#include <fmt/format.h>

#include <algorithm>

namespace citcat {

void FetchRuns::begin(CodePlace place, std::uint64_t first) {
  next_ = place;
  number_ = first;
  taken_ = 0;
  known_ = false;
}

std::optional<FetchRuns::Fetch> FetchRuns::fetch_from(std::uint64_t number, CodePlace place) {
  const auto found = pending_.find(CycleOrder::code, number);
  if (!found) return std::nullopt;
  return Fetch{*found, pending_.at(*found), place};
}

/// At the begin of the capture the queue may have held the next bytes already: the first fetch goes
/// on after them.
void FetchRuns::find_place_in_queue() {
  const auto first = fetch_from(number_, next_);
  if (!first) return;
  for (std::uint32_t held = 0; held <= setup_.queue_bytes; ++held) {
    if (!setup_.fits(next_.plus(held), first->transaction->address)) continue;
    next_ = next_.onward(held);
    known_ = true;
    return;
  }
}

std::vector<std::uint64_t> FetchRuns::candidates(CodePlace place) {
  if (!known_) find_place_in_queue();
  std::vector<std::uint64_t> found;
  CodePlace ahead = place_of_transaction();
  std::uint32_t bytes = 0;
  std::uint64_t number = number_;
  bool partly_taken = taken_ != 0;
  while (bytes <= most_ahead()) {
    const auto fetch = fetch_from(number, ahead);
    if (!fetch) break;
    const BusTransaction& t = *fetch->transaction;
    const bool goes_on = known_ && setup_.fits(ahead.address(), t.address);
    const bool fits = !partly_taken && setup_.fits(place.address(), t.address);
    if (!goes_on) {
      // Another run: the likeliest, because a jump that goes on where the queue ends is rare.
      if (fits) found.insert(found.begin(), fetch->number);
      break;
    }
    if (fits) found.push_back(fetch->number);
    ahead = ahead.onward(t.size);
    bytes += t.size;
    number = fetch->number + 1;
    partly_taken = false;
  }
  return found;
}

void FetchRuns::jump(CodePlace place, std::uint64_t number) {
  CodePlace ahead = place_of_transaction();
  for (auto fetch = fetch_from(number_, ahead); known_ && fetch && fetch->number < number;
       fetch = fetch_from(fetch->number + 1, ahead)) {
    pending_.complete(fetch->number, ahead.address());
    ahead = ahead.onward(fetch->transaction->size);
  }
  next_ = place;
  number_ = number;
  taken_ = 0;
  known_ = true;
}

bool FetchRuns::only_queued_before(std::uint64_t number) {
  if (!known_) find_place_in_queue();
  const auto fetch = fetch_from(number_, place_of_transaction());
  if (!known_) return !fetch || fetch->number >= number;
  return only_queued(place_of_transaction(), number_, number, most_ahead() + taken_);
}

/// Whether what is fetched from `from` on and before `number` is one run of `most` bytes at most.
bool FetchRuns::only_queued(CodePlace ahead, std::uint64_t from, std::uint64_t number,
                            std::uint32_t most) {
  std::uint32_t bytes = 0;
  for (auto fetch = fetch_from(from, ahead); fetch && fetch->number < number;
       fetch = fetch_from(fetch->number + 1, ahead)) {
    if (!setup_.fits(ahead.address(), fetch->transaction->address)) return false;
    ahead = ahead.onward(fetch->transaction->size);
    bytes += fetch->transaction->size;
    if (bytes > most) return false;
  }
  return true;
}

std::uint8_t FetchRuns::byte(std::uint32_t offset) {
  CodePlace ahead = place_of_transaction();
  std::uint32_t from = taken_ + offset;
  std::uint64_t number = number_;
  for (;;) {
    const auto fetch = fetch_from(number, ahead);
    if (!fetch) throw Contradiction{"the capture ends", ~std::uint64_t{0}, true};
    const BusTransaction& t = *fetch->transaction;
    if (!setup_.fits(ahead.address(), t.address))
      throw Contradiction{
          fmt::format("expected a code fetch from {:05x}, found one from ..{:0{}x}",
                      ahead.address().value, t.address.value & setup_.address_mask, 2),
          fetch->number};
    if (from < t.size) return t.data[from];
    from -= t.size;
    ahead = ahead.onward(t.size);
    number = fetch->number + 1;
  }
}

void FetchRuns::execute(std::uint32_t bytes) {
  while (bytes != 0) {
    const auto fetch = fetch_from(number_, place_of_transaction());
    if (!fetch) throw Contradiction{"the capture ends", ~std::uint64_t{0}, true};
    pending_.complete(fetch->number, fetch->place.address());
    const std::uint32_t here = std::min<std::uint32_t>(bytes, fetch->transaction->size - taken_);
    next_ = next_.onward(here);
    taken_ += here;
    bytes -= here;
    number_ = fetch->number;
    if (taken_ == fetch->transaction->size) {
      number_ = fetch->number + 1;
      taken_ = 0;
    }
  }
}

void FetchRuns::finish() {
  if (!known_) return;
  CodePlace ahead = place_of_transaction();
  for (auto fetch = fetch_from(number_, ahead);
       fetch && setup_.fits(ahead.address(), fetch->transaction->address);
       fetch = fetch_from(fetch->number + 1, ahead)) {
    pending_.complete(fetch->number, ahead.address());
    ahead = ahead.onward(fetch->transaction->size);
  }
}

void FetchRuns::return_to(const State& state) {
  next_ = state.next;
  number_ = state.number;
  taken_ = state.taken;
  known_ = state.known;
  pending_.reopen(CycleOrder::code, number_ + (taken_ != 0 ? 1 : 0));
}

}  // namespace citcat
