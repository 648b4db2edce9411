#pragma once

#include <csignal>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "formats/memory/handover.h"
#include "formats/memory/pool.h"

namespace citcat {

/// Blocks that a second thread fills while the first looks at those before. A fixed number of
/// blocks is reused in turn.
template <typename Block>
class BlocksAhead {
 public:
  /// Blocks that wake a thread that waits for some.
  static constexpr std::size_t kEnough = 2;
  /// Blocks that go round. A thread that waits for `kEnough` leaves one less lying on the way here,
  /// while one is looked at.
  static constexpr std::size_t kBlocks = 6;
  static_assert(kBlocks >= (kEnough - 1) + 1 + kEnough);

  /// `fill(Block&)` is called on the second thread, with blocks as they came back, until it returns
  /// false: that was the last one. It must not throw. Throws std::system_error where the system
  /// gives no thread.
  explicit BlocksAhead(std::function<bool(Block&)> fill)
      : fill_(std::move(fill)), worker_([this] { run(); }) {}
  /// Waits for the block in progress; no further one is filled.
  ~BlocksAhead() {
    idle_.close();
    worker_.join();
  }
  BlocksAhead(const BlocksAhead&) = delete;
  BlocksAhead& operator=(const BlocksAhead&) = delete;

  /// The next block, in their order; dropping it gives it back. Not to be called after the last.
  std::shared_ptr<Block> next() { return std::move(*filled_.take()); }

 private:
  void run() {
    leave_signals_to_others();
    for (bool more = true; more;) {
      std::shared_ptr<Block> block = idle_.take();
      if (!block) break;
      more = fill_(*block);
      filled_.put(std::move(block));
    }
    filled_.close();
  }

  /// Whoever uses the library has its signals handled on threads of its own. What an instruction of
  /// this one raises is this one's all the same.
  static void leave_signals_to_others() {
    sigset_t all;
    sigfillset(&all);
    for (const int raised : {SIGBUS, SIGFPE, SIGILL, SIGSEGV}) sigdelset(&all, raised);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
  }

  const std::function<bool(Block&)> fill_;
  Pool<Block> idle_{kBlocks, kEnough};
  Handover<std::shared_ptr<Block>> filled_{kEnough};
  std::thread worker_;  ///< last: it uses the others
};

}  // namespace citcat
