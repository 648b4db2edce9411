#pragma once
// QEMU's functions for physical memory, which are no part of its plugin interface: found by the
// names that they have in QEMU 10, or by those in 11.1.

#include "monitor/bus/guest_memory.h"

namespace citcat::monitor {

/// Null where this QEMU exports them by neither name.
GuestMemory::PhysicalAccess find_physical_access();
GuestMemory::Map find_physical_map();
GuestMemory::Unmap find_physical_unmap();

}  // namespace citcat::monitor
