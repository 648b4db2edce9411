#pragma once
// Accesses that were reported before the instruction that made them is known.

#include <cstdint>
#include <span>
#include <vector>

#include "events/machine/address.h"
#include "events/position.h"
#include "replay/machine/observer.h"
#include "tools/host/tool.h"

namespace citcat::tools {

class PendingAccesses {
 public:
  bool empty() const { return items_.empty(); }
  /// The first is a fetch: of the instruction that claims them all.
  bool begin_with_code() const { return !items_.empty() && items_.front().code; }
  /// An instruction was fetched at `now`, and has not completed.
  bool has_code_of(Position now) const { return begin_with_code() && fetched_at_ == now; }
  std::span<const OtherAccess> items() const { return items_; }
  /// When the last of them was made.
  Position last_at() const { return last_at_; }

  void add_code(PhysAddr a, std::uint32_t size, Position now);
  /// `bytes`: at most eight, those that are known. `linear`: of an access to data.
  void add(PhysAddr a, std::uint32_t size, AccessKind kind, bool write, LinearAddr linear,
           std::span<const std::uint8_t> bytes, Position now);
  /// Where the second part of the instruction's bytes lies, if it was reported; else 0.
  PhysAddr rest_of_code() const;
  void clear() { items_.clear(); }
  /// The instruction is going to complete, and is reported with its own bytes.
  void forget_code() {
    std::erase_if(items_, [](const OtherAccess& a) { return a.code; });
  }

 private:
  std::vector<OtherAccess> items_;
  Position fetched_at_;  ///< the code among them
  Position last_at_;
};

}  // namespace citcat::tools
