#pragma once
// The state that metrics keep for each thread of the recorded machine.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tools/guest/call_stacks.h"

namespace citcat::mdl {

class MetricRun;

/// The state of one metric in one thread.
struct ThreadState {
  bool begun = false;                   ///< the code at $start has run
  std::vector<std::int64_t> variables;  ///< without the metric itself
  std::uint64_t starts = 0;             ///< of the timer, that were not stopped
};

struct Thread {
  std::weak_ptr<const std::uint64_t> clock;
  std::vector<ThreadState> states;  ///< by number of the metric
  std::vector<MetricRun*> running;  ///< whose timers run
};

class ThreadTable {
 public:
  /// Made where it is new. Valid until the next call.
  Thread& of(const tools::CallStacks::Clock& clock) {
    Thread& thread = threads_[clock.get()];
    // Another one that has ended may have had its clock at the same address.
    if (thread.clock.lock() != clock) {
      thread = Thread{};
      thread.clock = clock;
      if (threads_.size() > most_) forget_ended();
    }
    return threads_[clock.get()];
  }
  template <class F>
  void for_each(F&& visit) {
    for (auto& [clock, thread] : threads_) {
      if (!thread.clock.expired()) visit(thread);
    }
  }

 private:
  void forget_ended() {
    std::erase_if(threads_, [](const auto& entry) { return entry.second.clock.expired(); });
    constexpr std::size_t kLeast = 256;
    most_ = std::max(2 * threads_.size(), kLeast);
  }

  std::unordered_map<const std::uint64_t*, Thread> threads_;
  std::size_t most_ = 256;
};

}  // namespace citcat::mdl
