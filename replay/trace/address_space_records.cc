#include "replay/trace/address_space_records.h"

#include <map>

#include "formats/io/error.h"
#include "replay/machine/machine.h"

namespace citcat {

std::uint32_t kt_frame(PhysAddr a) {
  const FrameNumber frame = a.page();
  if (frame > ~std::uint32_t{0})
    throw UsageError("KT has no records for page frames beyond 16 TiB, as this run uses them");
  return static_cast<std::uint32_t>(frame);
}

KtRecord process_record(AddressSpaceId cr3) {
  KtRecord record;
  record.kind = KtRecord::Kind::process;
  record.pid = kt_process(cr3);
  return record;
}

KtRecord translation_record(LinearAddr page, PhysAddr frame) {
  KtRecord record;
  record.kind = KtRecord::Kind::translation;
  record.frame = kt_frame(frame);
  const LinearAddr begin = page.page_begin();
  record.page = begin.low32();
  record.page_high = static_cast<std::uint32_t>(begin.value >> 32);
  return record;
}

std::vector<KtRecord> address_space_records(const Machine& machine) {
  std::vector<KtRecord> records{process_record(machine.engine().address_space())};
  if (!machine.mmu().paging()) return records;
  const auto state = machine.mmu().save();
  std::map<std::uint64_t, std::uint64_t> frames;
  for (const auto* const tlb : {&state->itlb, &state->dtlb}) {
    for (const Tlb::Entry& entry : *tlb) {
      if ((entry.tag & kPageMask) == 0) frames[entry.tag] = entry.frame;
    }
  }
  for (const auto& [page, frame] : frames) {
    records.push_back(translation_record(LinearAddr{page}, PhysAddr{frame}));
  }
  return records;
}

}  // namespace citcat
