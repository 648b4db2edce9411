#pragma once
// The process and the translations that a trace begins with.

#include <cstdint>
#include <vector>

#include "events/address.h"
#include "formats/kt/kt.h"

namespace citcat {

class Machine;

/// The process number of an address space.
inline std::uint32_t kt_process(std::uint32_t cr3) { return cr3 >> 12; }
inline KtRecord process_record(std::uint32_t cr3) {
  KtRecord record;
  record.kind = KtRecord::Kind::process;
  record.pid = kt_process(cr3);
  return record;
}
inline KtRecord translation_record(LinearAddr page, PhysAddr frame) {
  KtRecord record;
  record.kind = KtRecord::Kind::translation;
  record.frame = frame.page();
  const LinearAddr begin = page.page_begin();
  record.page = begin.low32();
  record.page_high = static_cast<std::uint32_t>(begin.value >> 32);
  return record;
}

/// The process that runs now, and the translations that the machine's TLB holds, by page: what a
/// reader that begins here cannot have read before.
std::vector<KtRecord> address_space_records(const Machine& machine);

}  // namespace citcat
