#pragma once
// A thread that writes ZIP files while another one makes what goes into them.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace citcat {

/// Makes calls of ZipWriter, in their order. Compression takes several times as long as making what
/// is compressed.
class ZipThread {
 public:
  ZipThread();
  /// Drops the calls that were not begun.
  ~ZipThread();
  ZipThread(const ZipThread&) = delete;
  ZipThread& operator=(const ZipThread&) = delete;

  /// Makes the call later. Waits while kMostWaiting wait. Throws what an earlier call threw.
  void put(std::function<void()> call);
  /// Waits for all calls. Throws what one of them threw.
  void drain();

  static constexpr std::size_t kMostWaiting = 64;

 private:
  void run();
  void wait_for(std::unique_lock<std::mutex>& lock, std::size_t waiting);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;  ///< the first is being made
  std::exception_ptr failure_;
  bool stops_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace citcat
