#include "replay/infer/registers/table_walk.h"

#include <algorithm>
#include <utility>

#include "replay/infer/registers/entry_traffic.h"

namespace citcat {

std::optional<PageEntry> TableWalk::entry(PhysAddr at) const {
  return PageMap::entry(tables_, at, [this](PhysAddr a) { return known_dword(image_, a); });
}

/// An entry of eight bytes is read at once or, where the bus has less, its lower half first.
bool TableWalk::is_whole_entry(const BusTransaction& t, PhysAddr& at) {
  const auto lower = std::exchange(lower_half_, std::nullopt);
  if (t.op != BusOp::data_read) return false;
  at = t.address;
  if (t.size == tables_.entry_bytes) return at.offset_in(tables_.entry_bytes) == 0;
  if (t.size != 4 || tables_.entry_bytes != 8) return false;
  if (at.offset_in(8) == 0) {
    lower_half_ = at;
    return false;
  }
  at = at.begin_of(8);
  return lower == at;
}

bool TableWalk::is_update(const BusTransaction& t) const {
  return t.op == BusOp::data_write &&
         std::any_of(entries_.begin(), entries_.end(),
                     [&](PhysAddr at) { return t.address.is_within32(at, tables_.entry_bytes); });
}

void TableWalk::take(const BusTransaction& t) {
  PhysAddr at;
  const bool whole = is_whole_entry(t, at);
  if (lower_half_ || is_update(t)) return;
  if (!whole) return entries_.clear();
  const bool may_go_on = !entries_.empty() && entries_.size() < tables_.levels;
  const auto before = may_go_on ? entry(entries_.back()) : std::nullopt;
  if (!before || !before->is_present() || before->is_large() ||
      before->address().page() != at.page()) {
    entries_.clear();
    begin_ = t.index;
  }
  entries_.push_back(at);
}

std::optional<std::uint64_t> TableWalk::page(PhysAddr next) const {
  if (entries_.empty()) return std::nullopt;
  const auto count = static_cast<unsigned>(entries_.size());
  std::uint64_t linear = 0;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t index = entries_[i].offset_in_page() / tables_.entry_bytes;
    linear |= index << tables_.shift(tables_.levels - i);
  }
  // What bit 47 is, those above it are.
  if (tables_.levels == 4 && (linear >> 47) != 0) linear |= ~std::uint64_t{0} << 48;
  if (count == tables_.levels) return LinearAddr{linear}.page();
  const unsigned level = tables_.levels - count + 1;
  const auto last = entry(entries_.back());
  if (!tables_.may_be_large(level) || !last || !last->is_large()) return std::nullopt;
  return LinearAddr{linear | next.offset_in(1u << tables_.shift(level))}.page();
}

}  // namespace citcat
