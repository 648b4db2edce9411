#include "replay/diagnose/evidence_index.h"

#include <algorithm>

namespace citcat {

EvidenceIndex::EvidenceIndex(EvidenceReader& evidence, const std::vector<PhysAddr>& bytes) {
  for (const PhysAddr a : bytes) accesses_[a.value];
  std::unordered_map<FrameNumber, bool> pages;
  for (const PhysAddr a : bytes) pages[a.page()] = true;
  for (BusTransaction t; evidence.next(t);) {
    if (!t.is_memory() || pages.count(t.address.page()) == 0) continue;
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const auto found = accesses_.find(t.address.plus32(i).value);
      if (found == accesses_.end() || found->second.size() == kMax) continue;
      found->second.push_back({t.index, t.position, t.op == BusOp::data_write,
                               t.op == BusOp::code_read, t.has(kSnoop)});
    }
  }
}

const std::vector<ShownAccess>& EvidenceIndex::of(PhysAddr byte) const {
  static const std::vector<ShownAccess> none;
  const auto found = accesses_.find(byte.value);
  return found != accesses_.end() ? found->second : none;
}

std::uint64_t EvidenceIndex::reads_from(PhysAddr byte, std::uint64_t transaction,
                                        std::uint64_t end) const {
  std::uint64_t reads = 0;
  for (const ShownAccess& a : of(byte)) {
    if (a.transaction < transaction) continue;
    if (a.write || a.transaction >= end) break;
    ++reads;
  }
  return reads;
}

std::uint64_t EvidenceIndex::reads_before(PhysAddr byte, std::uint64_t transaction,
                                          std::uint64_t begin) const {
  std::uint64_t reads = 0;
  for (const ShownAccess& a : of(byte)) {
    if (a.transaction >= transaction) break;
    if (a.transaction < begin) continue;
    reads = a.write ? 0 : reads + 1;
  }
  return reads;
}

std::optional<ShownAccess> EvidenceIndex::last_write(PhysAddr byte,
                                                     std::uint64_t transaction) const {
  std::optional<ShownAccess> last;
  for (const ShownAccess& a : of(byte)) {
    if (a.transaction >= transaction) break;
    if (a.write) last = a;
  }
  return last;
}

std::vector<BusTransaction> transactions_from(EvidenceReader& evidence, std::uint64_t first,
                                              std::size_t count) {
  std::vector<BusTransaction> found;
  for (BusTransaction t; found.size() < count && evidence.next(t);) {
    if (t.index >= first) found.push_back(t);
  }
  return found;
}

}  // namespace citcat
