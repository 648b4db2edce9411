#pragma once
// Values that cross no bus.

#include <cstdint>

#include "events/packed_events.h"
#include "events/position.h"

namespace citcat {

/// A value that crosses no bus, from a monitor that knows it; consumed in order like I/O.
struct InternalRead {
  enum class Op : std::uint8_t { rdtsc, rdmsr, wrmsr, cpuid, rdpmc, rdtscp, rdrand, rdseed };
  Op op = Op::rdtsc;
  bool position_known = false;
  Position position;
  std::uint64_t ip = 0;  ///< of the instruction, offset in CS
  /// After the instruction; of RDRAND and RDSEED the number in EDX and EAX, and CF in ECX.
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;

  /// EDX and EAX as the one number that they are of a counter or an MSR.
  std::uint64_t value() const { return std::uint64_t{edx} << 32 | eax; }
  bool operator==(const InternalRead&) const = default;
};

/// The instruction's mnemonic. Static.
const char* internal_read_name(InternalRead::Op op);

/// Takes 4 to 8 bytes in a program that reads the time, at most 46.
struct InternalReadCodec {
  using Event = InternalRead;
  static void pack(const InternalRead& read, const InternalRead& before, PackedWriter& out);
  static void unpack(PackedReader& in, InternalRead& read);
};

using InternalReads = PackedEvents<InternalReadCodec>;

}  // namespace citcat
