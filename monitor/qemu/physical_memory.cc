#include "monitor/qemu/physical_memory.h"

#include <dlfcn.h>

namespace citcat::monitor {
namespace {

template <class F>
F find_either(const char* name, const char* newer_name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  return reinterpret_cast<F>(found != nullptr ? found : dlsym(RTLD_DEFAULT, newer_name));
}

// QEMU 11.1 has a function for each direction (system/physmem.c).
using Read = void (*)(PhysicalAddress address, void* bytes, std::uint64_t size);
using Write = void (*)(PhysicalAddress address, const void* bytes, std::uint64_t size);
Read read_memory = nullptr;
Write write_memory = nullptr;

void access_newer(PhysicalAddress address, void* bytes, std::uint64_t size, bool store) {
  if (store)
    write_memory(address, bytes, size);
  else
    read_memory(address, bytes, size);
}

}  // namespace

GuestMemory::PhysicalAccess find_physical_access() {
  if (void* const both = dlsym(RTLD_DEFAULT, "cpu_physical_memory_rw"))
    return reinterpret_cast<GuestMemory::PhysicalAccess>(both);
  read_memory = reinterpret_cast<Read>(dlsym(RTLD_DEFAULT, "physical_memory_read"));
  write_memory = reinterpret_cast<Write>(dlsym(RTLD_DEFAULT, "physical_memory_write"));
  return read_memory != nullptr && write_memory != nullptr ? access_newer : nullptr;
}

GuestMemory::Map find_physical_map() {
  return find_either<GuestMemory::Map>("cpu_physical_memory_map", "physical_memory_map");
}

GuestMemory::Unmap find_physical_unmap() {
  return find_either<GuestMemory::Unmap>("cpu_physical_memory_unmap", "physical_memory_unmap");
}

}  // namespace citcat::monitor
