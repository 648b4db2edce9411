#pragma once
// Pages of mapped files that the system can no longer deliver.

#include <cstdint>
#include <span>

namespace citcat {

/// While it lives, pages of a mapping that cannot be read (SIGBUS: others have cut the file short,
/// or its disk fails) do not end the program: that page and those after it become zeros, and
/// lost() says so. The first guard installs a handler of SIGBUS for good, which passes other
/// faults on to the handler there was.
class PageGuard {
 public:
  /// Guards a mapping of whole pages, which must outlive the guard. Guards nothing, and is_set() is
  /// false, when kMax others live.
  explicit PageGuard(std::span<const std::uint8_t> pages);
  ~PageGuard();
  PageGuard(const PageGuard&) = delete;
  PageGuard& operator=(const PageGuard&) = delete;

  bool is_set() const { return slot_ != nullptr; }
  bool lost() const;

  static constexpr int kMax = 64;

 private:
  struct Slot;
  friend struct PageGuardSlots;
  Slot* slot_ = nullptr;
};

}  // namespace citcat
