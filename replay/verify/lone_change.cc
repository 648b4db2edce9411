#include "replay/verify/lone_change.h"

#include <algorithm>

namespace citcat {
namespace {

constexpr std::uint64_t kSeveral = ~std::uint64_t{0};  // no dword's number

}  // namespace

bool LoneChanges::is_memory(PhysAddr a) const {
  constexpr std::uint32_t kAdapters = 0xa0000, kBios = 0xe0000, kAboveBios = 0x100000,
                          kDevices = 0x80000000;
  if (a.value >> 32 != 0) return true;
  if (ram_bytes_ != 0 && a.value >= std::max(ram_bytes_, kAboveBios)) return false;
  return a.value < kAdapters || (a.value >= kBios && a.value < kDevices);
}

bool LoneChanges::stands_alone(PhysAddr address) {
  if (!is_memory(address)) return false;
  if (!pages_) {
    pages_.emplace();
    for (const ExternalWrite& w : writes_) {
      const auto page = pages_->try_emplace(w.address.page(), w.address.value / 4).first;
      const std::uint64_t end = w.address.value + w.data.size();
      const bool same = page->second == w.address.value / 4 && (end - 1) / 4 == page->second;
      if (!same) page->second = kSeveral;
    }
  }
  const auto page = pages_->find(address.page());
  return page != pages_->end() && page->second == address.value / 4;
}

}  // namespace citcat
