#include "replay/trace/address_space_records.h"

#include <map>

#include "replay/machine/machine.h"

namespace citcat {

std::vector<KtRecord> address_space_records(const Machine& machine) {
  std::vector<KtRecord> records{process_record(machine.engine().address_space())};
  if (!machine.mmu().paging()) return records;
  const auto state = machine.mmu().save();
  std::map<std::uint64_t, std::uint32_t> frames;
  for (const auto* const tlb : {&state->itlb, &state->dtlb}) {
    for (const Mmu::Entry& entry : *tlb) {
      if ((entry.tag & kPageMask) == 0) frames[entry.tag] = entry.frame;
    }
  }
  for (const auto& [page, frame] : frames) {
    records.push_back(translation_record(LinearAddr{page}, PhysAddr{frame}));
  }
  return records;
}

}  // namespace citcat
