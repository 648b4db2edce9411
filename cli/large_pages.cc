#include "cli/large_pages.h"

#include <cstdlib>

#if defined(__linux__) && defined(__GLIBC__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace citcat {

#if defined(__linux__) && defined(__GLIBC__)

void use_large_pages() {
  constexpr int kHeap = 64 << 20;
  // Larger allocations stay apart, and go back to the system when they are freed.
  constexpr int kApart = 4 << 20;
  constexpr std::uintptr_t kLargePage = std::uintptr_t{1} << 21;
  auto begin = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  if (::mallopt(M_MMAP_THRESHOLD, kApart) == 0 || ::mallopt(M_TRIM_THRESHOLD, 2 * kHeap) == 0 ||
      ::mallopt(M_TOP_PAD, kHeap) == 0) {
    return;
  }
  // More than is free: the heap grows, by the pad too, and only where it is touched it takes
  // memory. (Volatile, or the compiler would see that nobody wants it.)
  void* volatile more = std::malloc(kApart / 2);
  std::free(more);
  ::mallopt(M_TOP_PAD, 1 << 20);
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0));
  begin = (begin + kLargePage - 1) & ~(kLargePage - 1);
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

#else

void use_large_pages() {}

#endif

}  // namespace citcat
