// What the host is told access by access, and which instruction it belongs to.

#include <algorithm>

#include "replay/machine/machine.h"
#include "tools/host/tool_host.h"

namespace citcat::tools {

// Accesses before the first instruction of interest are nobody's; where those behind the last
// belong shows with the instruction that claims them.

void ToolHost::fetch(PhysAddr a, std::uint32_t size, Position now) {
  if (now.instruction < options_.from) return;
  const bool begun = !pending_.empty() && pending_.front().code && pending_at_ == now;
  // An instruction that is begun anew was fetched already.
  if (begun && pending_.front().physical == a) return;
  const bool rest = begun && pending_.back().code;
  if (!rest && !pending_.empty()) {
    // What waits is the walk for this fetch, or what a delivery stored that is over by now: both
    // are of the level that has been reached.
    if (context_.refresh()) context_changed();
    flush_others();
  }
  pending_at_ = told_at_ = now;
  OtherAccess& access = pending_.emplace_back();
  access.physical = a;
  access.size = static_cast<std::uint16_t>(size);
  access.code = true;
}

void ToolHost::add_access(PhysAddr a, std::uint32_t size, AccessKind kind, bool write,
                          std::span<const std::uint8_t> bytes) {
  OtherAccess& access = pending_.emplace_back();
  access.physical = a;
  access.size = static_cast<std::uint16_t>(size);
  access.kind = kind;
  access.write = write;
  if (kind == AccessKind::data) access.linear = context_.machine().accessed();
  std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof access.value),
              reinterpret_cast<std::uint8_t*>(&access.value));
}

void ToolHost::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  if (now.instruction < options_.from || is_unclaimed(now)) return;
  const std::uint8_t* const host = context_.machine().memory().host(a);
  told_at_ = now;
  add_access(a, size, kind, false, {host, host != nullptr && size <= 8 ? size : 0});
}

void ToolHost::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                     Position now) {
  if (now.instruction < options_.from || is_unclaimed(now)) return;
  told_at_ = now;
  add_access(a, static_cast<std::uint32_t>(bytes.size()), kind, true,
             bytes.size() <= 8 ? bytes : std::span<const std::uint8_t>{});
}

/// Where the second part of the instruction's bytes lies, if it was told.
PhysAddr ToolHost::rest_of_code() const {
  const bool there = pending_.size() > 1 && pending_[0].code && pending_[1].code;
  return there ? pending_[1].physical : PhysAddr{};
}

/// What was told is what this instruction did, where it was fetched for it.
std::span<const Reference> ToolHost::claim_accesses(const ExecutedInstruction& e) {
  if (pending_.empty()) return e.references;
  if (!pending_.front().code) {
    flush_others();
    return e.references;
  }
  claimed_.clear();
  for (const OtherAccess& access : pending_) {
    if (!access.code) claimed_.push_back(access);
  }
  pending_.clear();
  claimed_.insert(claimed_.end(), e.references.begin(), e.references.end());
  return claimed_;
}

/// What was told so far belongs to no instruction that completed.
void ToolHost::flush_others() {
  if (pending_.empty()) return;
  if (!context_.begun() && context_.refresh()) context_changed();
  const bool tells =
      in_range(told_at_) && (options_.scope == nullptr || options_.scope->holds(context_terms_));
  if (tells && !hears_accesses_.empty()) {
    Group& mine = group();
    for (const std::size_t i : hears_accesses_) mine.tools[i]->accesses(pending_, context_);
  }
  pending_.clear();
}

}  // namespace citcat::tools
