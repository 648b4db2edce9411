#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "events/machine/address.h"
#include "events/recording.h"
#include "formats/io/input.h"

namespace citcat {

/// Reads the values that cross no bus, as a monitor that knows them wrote them: CSV with the header
/// `icount,op,eip,eax,ebx,ecx,edx`. One line for each RDTSC, RDMSR, WRMSR, CPUID, RDPMC, RDTSCP,
/// RDRAND or RDSEED, in order; icount (decimal) is the instruction's own index since the start of
/// the capture, empty when it was not counted; eip (of up to 64 bits) and the registers after the
/// instruction are hexadecimal.
/// Compressed files are read as they are. Throws FormatError with the line number.
///
/// Accesses to registers of the local APIC are among them, as APICRD and APICWR, bytes that the
/// emulator has stored, as STORED, and translations that the processor has dropped, as DROPPED;
/// they are left out here.
InternalReads load_side_values(const std::string& path);
InternalReads read_side_values(std::unique_ptr<InputStream> input);

/// An access to a register of the local APIC: `eax` is its value, `ebx` its size, `ecx` its
/// physical address.
struct RegisterAccess {
  std::uint64_t instruction = 0;
  bool writes = false;
  std::uint8_t size = 0;
  PhysAddr address;
  std::uint32_t value = 0;
};
/// Those of such a file, without the other values. Throws FormatError with the line number.
std::vector<RegisterAccess> load_register_accesses(const std::string& path);

/// A byte that an emulator has stored differently from a processor, and which the instruction then
/// reads: `eax` is its value, `ecx` its physical address.
struct EmulatorStore {
  std::uint64_t instruction = 0;
  PhysAddr address;
  std::uint8_t value = 0;
  auto operator<=>(const EmulatorStore&) const = default;
};
/// Those of such a file, in its order. Throws FormatError with the line number.
std::vector<EmulatorStore> load_emulator_stores(const std::string& path);

/// The translations that the processor has dropped, in the order of instructions: `ebx` is the
/// number of completed iterations of the REP in flight, `ecx` an address in the page. Throws
/// FormatError with the line number.
std::vector<DroppedTranslation> load_dropped_translations(const std::string& path);
std::vector<DroppedTranslation> read_dropped_translations(std::unique_ptr<InputStream> input);

}  // namespace citcat
