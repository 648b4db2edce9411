#include "capture/import/register_accesses.h"

#include "capture/bus/side_values.h"

namespace citcat {

RegisterAccesses::RegisterAccesses(const std::string& path) {
  for (const RegisterAccess& access : load_register_accesses(path)) {
    BusTransaction t;
    t.op = access.writes ? BusOp::data_write : BusOp::data_read;
    t.address = access.address;
    t.size = access.size;
    t.flags = kUncacheable | kPositionKnown;
    t.position = {access.instruction, 0};
    for (std::size_t i = 0; i < access.size; ++i)
      t.data[i] = static_cast<std::uint8_t>(access.value >> (8 * i));
    all_.push_back(t);
  }
}

const BusTransaction* RegisterAccesses::before(const BusTransaction& t) const {
  const BusTransaction* const next = rest();
  if (next == nullptr || !t.has(kPositionKnown) || t.has(kStateWindow)) return nullptr;
  if (next->position.instruction < t.position.instruction) return next;
  const bool same = next->position.instruction == t.position.instruction;
  const bool then_writes = t.op == BusOp::data_write && !t.has(kWriteBack);
  return same && next->op == BusOp::data_read && then_writes ? next : nullptr;
}

}  // namespace citcat
