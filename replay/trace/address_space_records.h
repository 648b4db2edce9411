#pragma once
// The process and the translations that a trace begins with.

#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "formats/kt/kt.h"

namespace citcat {

class Machine;

/// The machine's number of a page frame. Below 16 TiB, as all are that have stand-ins, it has 32
/// bits.
std::uint32_t kt_frame(const Machine& machine, PhysAddr a);
/// The process number of an address space: the frame of its highest table.
inline std::uint32_t kt_process(const Machine& machine, std::uint32_t cr3) {
  return kt_frame(machine, PhysAddr{cr3});
}
KtRecord process_record(const Machine& machine, std::uint32_t cr3);
KtRecord translation_record(const Machine& machine, LinearAddr page, PhysAddr frame);

/// The process that runs now, and the translations that the machine's TLB holds, by page: what a
/// reader that begins here cannot have read before.
std::vector<KtRecord> address_space_records(const Machine& machine);

}  // namespace citcat
