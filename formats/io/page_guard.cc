#include "formats/io/page_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

namespace citcat {

struct PageGuard::Slot {
  std::atomic<bool> used{false}, lost{false};
  // An empty range while the slot is not used: the handler finds no address in it.
  std::atomic<std::uintptr_t> begin{0}, end{0};
};

/// What the handler reads: nothing that is ever allocated or freed.
struct PageGuardSlots {
  static std::array<PageGuard::Slot, PageGuard::kMax> all;
  static struct sigaction before;
  static std::uintptr_t page_bytes;

  static bool install();
  static void handle(int signal, siginfo_t* info, void* context);
};

std::array<PageGuard::Slot, PageGuard::kMax> PageGuardSlots::all;
struct sigaction PageGuardSlots::before = {};
std::uintptr_t PageGuardSlots::page_bytes = 0;

bool PageGuardSlots::install() {
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &before) == 0;
}

void PageGuardSlots::handle(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (PageGuard::Slot& slot : all) {
    const std::uintptr_t end = slot.end;
    if (info->si_code <= 0 || address < slot.begin || address >= end) continue;
    const std::uintptr_t page = address & ~(page_bytes - 1);
    void* const zeros = ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) break;
    slot.lost = true;
    return;
  }
  // None of ours: the access faults once more when this returns, or what was sent comes again.
  ::sigaction(SIGBUS, &before, nullptr);
  if (info->si_code <= 0) ::raise(signal);
}

PageGuard::PageGuard(std::span<const std::uint8_t> pages) {
  static const bool installed = PageGuardSlots::install();
  if (!installed) return;
  for (Slot& slot : PageGuardSlots::all) {
    if (slot.used.exchange(true)) continue;
    slot_ = &slot;
    slot.lost = false;
    const auto begin = reinterpret_cast<std::uintptr_t>(pages.data());
    slot.begin = begin;
    slot.end = begin + pages.size();
    return;
  }
}

PageGuard::~PageGuard() {
  if (slot_ == nullptr) return;
  slot_->end = 0;
  slot_->used = false;
}

bool PageGuard::lost() const { return slot_ != nullptr && slot_->lost; }

}  // namespace citcat
