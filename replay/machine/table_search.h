#pragma once
// Which pages the page tables in use name as tables: a processor may read these without an access
// that needs it.

#include <vector>

#include "events/machine/address.h"

namespace citcat {

class Machine;

/// Whether the four levels of long mode's tables name this page as one of them, below the top;
/// false in other modes. Looks through some ten thousands of entries.
bool names_table(const Machine& machine, FrameNumber page);

/// The lowest tables, as the tables in use name them, of the pages that the replay's TLB holds;
/// none in long mode.
std::vector<PhysAddr> tables_of_held_pages(const Machine& machine);

}  // namespace citcat
