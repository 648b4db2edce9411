#pragma once
// Isolated page tables: Linux on amd64 may give each process two tables, one page from each other.
// Programs run with the upper one, which lacks most of the kernel; the kernel changes to the lower
// one when it is entered, and back when it leaves (arch/x86/entry/calling.h,
// SWITCH_TO_KERNEL_CR3).

#include <cstdint>

#include "events/machine/address.h"
#include "events/machine/address_space.h"

namespace citcat {

class Machine;

/// The bit that tells the two tables of a process apart: set for the one that its program runs
/// with.
inline constexpr AddressSpaceId kUserTables = kPageSize;

/// Instructions from an entry of the kernel to its load of CR3, at most. Linux 6.1 takes less than
/// ten after SYSCALL, and less than fifty after an interrupt or exception, where it saves and
/// clears all registers first; a switch of processes takes hundreds.
inline constexpr std::uint64_t kMostToLoad = 96;

/// A program runs, and the other table of the pair is the kernel's: it has what the program's has,
/// but does not let the kernel execute it (arch/x86/mm/pti.c, __pti_set_user_pgtbl). False as well
/// where too little of the two is known.
bool runs_with_isolated_tables(const Machine& machine);

/// The instruction that has just loaded CR3: where the next one lies, and where it lies itself.
struct TableLoad {
  LinearAddr next, linear;
  PhysAddr physical;
};

/// What follows `load` goes back to a program: code that goes straight on leads to SYSRET or IRET.
bool is_leaving_kernel(const Machine& machine, const TableLoad& load);

}  // namespace citcat
