#include "formats/zip/zip_thread.h"

#include <utility>

namespace citcat {

ZipThread::ZipThread() : thread_([this] { run(); }) {}

ZipThread::~ZipThread() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ZipThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || !calls_.empty(); });
    if (stops_) return;
    const auto call = std::move(calls_.front());
    const bool failed = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!failed) call();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) failure_ = failure;
    calls_.pop_front();
    changed_.notify_all();
  }
}

void ZipThread::wait_for(std::unique_lock<std::mutex>& lock, std::size_t waiting) {
  changed_.wait(lock, [&] { return calls_.size() <= waiting; });
  if (failure_) std::rethrow_exception(failure_);
}

void ZipThread::put(std::function<void()> call) {
  std::unique_lock lock(mutex_);
  wait_for(lock, kMostWaiting - 1);
  calls_.push_back(std::move(call));
  lock.unlock();
  changed_.notify_all();
}

void ZipThread::drain() {
  std::unique_lock lock(mutex_);
  wait_for(lock, 0);
}

}  // namespace citcat
