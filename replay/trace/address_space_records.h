#pragma once
// The process and the translations that a trace begins with.

#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/address_space.h"
#include "formats/kt/kt.h"

namespace citcat {

class Machine;

/// The machine's number of a page frame. Throws UsageError beyond 16 TiB: KT has 32 bits for it.
std::uint32_t kt_frame(PhysAddr a);
/// The process number of an address space: the frame of its highest table.
inline std::uint32_t kt_process(AddressSpaceId cr3) { return kt_frame(PhysAddr{cr3}); }
KtRecord process_record(AddressSpaceId cr3);
KtRecord translation_record(LinearAddr page, PhysAddr frame);

/// The process that runs now, and the translations that the machine's TLB holds, by page: what a
/// reader that begins here cannot have read before.
std::vector<KtRecord> address_space_records(const Machine& machine);

}  // namespace citcat
