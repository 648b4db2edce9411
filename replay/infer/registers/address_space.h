#pragma once
// Finds the page directory in use at an interrupt if CR3 was not dumped: tables are in memory, and
// the bus shows them being walked. In long mode the directory is that of the fourth level.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "events/machine/address_space.h"
#include "events/recording.h"
#include "replay/infer/registers/page_map.h"
#include "replay/infer/registers/protected_entry.h"

namespace citcat {

struct AddressSpace {
  bool paging = false;
  AddressSpaceId cr3 = 0;  ///< where the highest table is held
};

/// The page tables that an entry was made with, if any.
inline PageTables tables_of(const ProtectedEntry& entry) {
  return entry.long_mode ? kFourLevels : kTwoLevels;
}

/// Every page directory that the handler may have been entered with: those that put it where it was
/// fetched, and those that the bus shows being walked and that may. The one walked first is the
/// likeliest and comes first. Without paging, too, where that fits.
std::vector<AddressSpace> find_address_spaces(const Recording& recording,
                                              const EvidenceSource& evidence,
                                              const ProtectedEntry& entry);

/// Physical addresses that the bus shows being accessed directly after a walk of page tables, with
/// the number of the linear page that was walked to. The first walk counts.
std::map<std::uint64_t, std::uint64_t> walked_pages(const Recording& recording,
                                                    EvidenceReader& evidence,
                                                    const PageTables& tables,
                                                    const std::vector<AddressSpace>& spaces);

}  // namespace citcat
