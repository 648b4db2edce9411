#pragma once
// The code that a processor with a prefetch queue fetches: runs of consecutive addresses. At a jump
// the queue is emptied, its contents are never executed, and another run begins.

#include <cstdint>
#include <optional>
#include <vector>

#include "capture/complete/guided_processor.h"
#include "capture/complete/pending_transactions.h"

namespace citcat {

/// Which part of an address the captured lines show, and how far a processor fetches ahead.
struct FetchSetup {
  std::uint32_t address_mask = 0;
  std::uint32_t queue_bytes = 4;  ///< 4 on the 8088, 6 on the 8086
  std::uint32_t bus_bytes = 1;

  bool fits(PhysAddr whole, PhysAddr shown) const {
    return ((whole.value ^ shown.value) & address_mask) == 0;
  }
};

/// Follows the fetches of a capture, in which it is at the next byte that was not executed.
class FetchRuns {
 public:
  FetchRuns(PendingTransactions& pending, const FetchSetup& setup)
      : pending_(pending), setup_(setup) {}

  /// The processor is at `place`, and nothing is known of the queue. `first`: the transaction
  /// that the capture is followed from.
  void begin(CodePlace place, std::uint64_t first);

  /// Whether the next byte is that at `place`.
  bool is_at(CodePlace place) const { return known_ && next_ == place; }
  /// The transactions that a run at `place` can begin with, the likeliest first.
  std::vector<std::uint64_t> candidates(CodePlace place);
  /// The processor has jumped to `place`: what was fetched before transaction `number` stayed in
  /// the queue.
  void jump(CodePlace place, std::uint64_t number);
  /// Whether nothing but what may have stayed in the queue was fetched before transaction
  /// `number`.
  bool only_queued_before(std::uint64_t number);
  /// The same where the processor has jumped to `place`, whose run begins with transaction `from`.
  bool only_queued_between(CodePlace place, std::uint64_t from, std::uint64_t number) {
    return only_queued(place, from, number, most_ahead());
  }

  /// The byte `offset` after the next one. Throws Contradiction.
  std::uint8_t byte(std::uint32_t offset);
  /// So many bytes were executed.
  void execute(std::uint32_t bytes);
  /// The capture has ended: what can have been fetched ahead is completed.
  void finish();

  std::uint64_t next_transaction() const { return number_; }
  /// All that changes, to come back to.
  struct State {
    CodePlace next;
    std::uint64_t number = 0;
    std::uint32_t taken = 0;
    bool known = false;
  };
  State state() const { return {next_, number_, taken_, known_}; }
  void return_to(const State& state);

 private:
  /// A fetch, and where its first byte lies.
  struct Fetch {
    std::uint64_t number = 0;
    const BusTransaction* transaction = nullptr;
    CodePlace place;
  };
  /// The one from `number` on; nullopt at the end of the capture.
  std::optional<Fetch> fetch_from(std::uint64_t number, CodePlace place);
  /// Where the transaction that the next byte is in begins.
  CodePlace place_of_transaction() const { return next_.onward(0u - taken_); }
  void find_place_in_queue();
  bool only_queued(CodePlace ahead, std::uint64_t from, std::uint64_t number, std::uint32_t most);
  std::uint32_t most_ahead() const { return setup_.queue_bytes + setup_.bus_bytes; }

  PendingTransactions& pending_;
  FetchSetup setup_;
  CodePlace next_;
  std::uint64_t number_ = 0;  ///< of the transaction that has the next byte, or an earlier one
  std::uint32_t taken_ = 0;   ///< bytes of it that were executed
  bool known_ = false;        ///< where the run is
};

}  // namespace citcat
