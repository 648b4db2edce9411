#pragma once
// Bytes of memory that locked instructions use at some time in a run.

#include <cstdint>
#include <unordered_set>

#include "events/machine/address.h"
#include "replay/processors/machine_session.h"

namespace citcat::tools {

class LockedPlaces final : public MachineListener {
 public:
  void access(const ProcessorAccess& a) override {
    for (std::uint32_t i = 0; a.locked && i < a.size; ++i) bytes_.insert(a.address.plus32(i).value);
  }
  bool has(PhysAddr byte) const { return bytes_.contains(byte.value); }

 private:
  std::unordered_set<std::uint64_t> bytes_;
};

}  // namespace citcat::tools
