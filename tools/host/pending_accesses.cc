#include "tools/host/pending_accesses.h"

#include <algorithm>

namespace citcat::tools {

void PendingAccesses::add_code(PhysAddr a, std::uint32_t size, Position now) {
  fetched_at_ = last_at_ = now;
  OtherAccess& access = items_.emplace_back();
  access.physical = a;
  access.size = static_cast<std::uint16_t>(size);
  access.code = true;
}

void PendingAccesses::add(PhysAddr a, std::uint32_t size, AccessKind kind, bool write,
                          LinearAddr linear, std::span<const std::uint8_t> bytes, Position now) {
  last_at_ = now;
  OtherAccess& access = items_.emplace_back();
  access.physical = a;
  access.size = static_cast<std::uint16_t>(size);
  access.kind = kind;
  access.write = write;
  if (kind == AccessKind::data) access.linear = linear;
  std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof access.value),
              reinterpret_cast<std::uint8_t*>(&access.value));
}

PhysAddr PendingAccesses::rest_of_code() const {
  const bool there = items_.size() > 1 && items_[0].code && items_[1].code;
  return there ? items_[1].physical : PhysAddr{};
}

}  // namespace citcat::tools
