#include "formats/io/shared_ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "formats/io/error.h"

namespace citcat {

namespace {

[[noreturn]] void fail() {
  throw IoError(std::string("memory shared with another process: ") + std::strerror(errno));
}

void* map(void* at, std::size_t bytes, int protection, int flags, int file) {
  void* const p = ::mmap(at, bytes, protection, flags, file, 0);
  if (p == MAP_FAILED) fail();
  return p;
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

SharedRing::SharedRing(std::size_t bytes) : size_(whole_pages(bytes)), reader_(::getpid()) {
  const int file = ::memfd_create("citcat ring", MFD_CLOEXEC);
  if (file < 0) fail();
  try {
    if (::ftruncate(file, static_cast<off_t>(size_)) != 0) fail();
    bytes_ = static_cast<std::uint8_t*>(
        map(nullptr, 2 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
    for (const std::size_t copy : {std::size_t{0}, size_}) {
      map(bytes_ + copy, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file);
    }
    counts_ =
        new (map(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1))
            Counts{};
  } catch (...) {
    if (bytes_ != nullptr) ::munmap(bytes_, 2 * size_);
    ::close(file);
    throw;
  }
  ::close(file);
}

SharedRing::~SharedRing() {
  ::munmap(bytes_, 2 * size_);
  ::munmap(counts_, sizeof(Counts));
}

bool SharedRing::write(std::span<const std::uint8_t> bytes) {
  std::uint64_t written = counts_->written.load(std::memory_order_relaxed);
  while (!bytes.empty()) {
    const std::uint64_t used = written - counts_->read.load(std::memory_order_acquire);
    const std::size_t n = std::min<std::size_t>(bytes.size(), size_ - used);
    if (n == 0) {
      if (::getppid() != reader_) return false;
      wait();
      continue;
    }
    std::memcpy(bytes_ + written % size_, bytes.data(), n);
    written += n;
    counts_->written.store(written, std::memory_order_release);
    bytes = bytes.subspan(n);
  }
  return true;
}

std::size_t SharedRing::skippable(std::size_t bytes) const {
  const std::uint64_t written = counts_->written.load(std::memory_order_relaxed);
  if (counts_->read.load(std::memory_order_acquire) != written) return 0;
  const std::size_t at = written % size_;
  return at < bytes ? 0 : size_ - at;
}

void SharedRing::skip(std::size_t bytes) {
  counts_->written.store(counts_->written.load(std::memory_order_relaxed) + bytes,
                         std::memory_order_release);
}

std::span<const std::uint8_t> SharedRing::readable() const {
  const std::uint64_t read = counts_->read.load(std::memory_order_relaxed);
  const std::uint64_t n = counts_->written.load(std::memory_order_acquire) - read;
  return {bytes_ + read % size_, static_cast<std::size_t>(n)};
}

void SharedRing::consume(std::size_t bytes) {
  counts_->read.store(counts_->read.load(std::memory_order_relaxed) + bytes,
                      std::memory_order_release);
}

void SharedRing::wait() { ::usleep(500); }

}  // namespace citcat
