#pragma once
// Values that cross no bus.

#include <cstdint>

#include "events/packed_events.h"
#include "events/position.h"

namespace citcat {

/// A value that crosses no bus, from a monitor that knows it. The replay consumes them in order, as
/// it does port reads.
struct InternalRead {
  enum class Op : std::uint8_t { rdtsc, rdmsr, wrmsr, cpuid, rdpmc, rdtscp, rdrand, rdseed };
  Op op = Op::rdtsc;
  bool position_known = false;
  Position position;
  std::uint64_t ip = 0;  ///< offset of the instruction in CS
  /// Registers after the instruction. For RDRAND and RDSEED EDX and EAX hold the number, ECX CF.
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;

  /// EDX and EAX as one number, for a counter or an MSR.
  std::uint64_t value() const { return std::uint64_t{edx} << 32 | eax; }
  bool operator==(const InternalRead&) const = default;
};

/// The instruction's mnemonic. Static.
const char* internal_read_name(InternalRead::Op op);

/// Packs an event into 4 to 8 bytes if a program reads the time; at most 46.
struct InternalReadCodec {
  using Event = InternalRead;
  static void pack(const InternalRead& read, const InternalRead& before, PackedWriter& out);
  static void unpack(PackedReader& in, InternalRead& read);
};

using InternalReads = PackedEvents<InternalReadCodec>;

}  // namespace citcat
