// Receives the accesses that are reported one by one, and finds the instruction of each.

#include <algorithm>

#include "replay/machine/machine.h"
#include "tools/host/tool_host.h"

namespace citcat::tools {

// Accesses before the first instruction of interest are nobody's; where those after the last
// belong shows with the instruction that claims them.

void ToolHost::fetch(PhysAddr a, std::uint32_t size, Position now) {
  if (now.instruction < options_.from) return;
  const bool begun = pending_.has_code_of(now);
  // An instruction that is begun anew was fetched already.
  if (begun && pending_.items().front().physical == a) return;
  const bool rest = begun && pending_.items().back().code;
  if (!rest && !pending_.empty()) {
    // What waits is the walk for this fetch, or what a delivery stored that is over by now: both
    // are of the level that has been reached.
    if (context_.refresh()) context_changed();
    flush_others();
  }
  pending_.add_code(a, size, now);
}

void ToolHost::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  if (now.instruction < options_.from || is_unclaimed(now)) return;
  const std::uint8_t* const host = context_.machine().memory().host(a);
  pending_.add(a, size, kind, false, context_.machine().accessed(),
               {host, host != nullptr && size <= 8 ? size : 0}, now);
}

void ToolHost::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                     Position now) {
  if (now.instruction < options_.from || is_unclaimed(now)) return;
  pending_.add(a, static_cast<std::uint32_t>(bytes.size()), kind, true,
               context_.machine().accessed(),
               bytes.size() <= 8 ? bytes : std::span<const std::uint8_t>{}, now);
}

/// What was told is what this instruction did, where it was fetched for it.
std::span<const Reference> ToolHost::claim_accesses(const ExecutedInstruction& e) {
  if (pending_.empty()) return e.references;
  if (!pending_.begin_with_code()) {
    flush_others();
    return e.references;
  }
  claimed_.clear();
  for (const OtherAccess& access : pending_.items()) {
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
  const bool tells = in_range(pending_.last_at()) &&
                     (options_.scope == nullptr || options_.scope->holds(context_terms_));
  if (tells && !listening_.accesses.empty()) {
    Group& mine = group();
    for (const std::size_t i : listening_.accesses)
      mine.tools[i]->accesses(pending_.items(), context_);
  }
  pending_.clear();
}

}  // namespace citcat::tools
