#include "replay/machine/units/debug_unit.h"

#include <optional>

#include "events/machine/control_bits.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

namespace {

/// What breakpoint `n` watches (R/Wn of DR7).
std::uint32_t watched_access(std::uint32_t dr7, unsigned n) { return dr7 >> (16 + 4 * n) & 3; }
/// How many bytes (LENn). 2 is eight bytes where it is defined at all.
std::uint32_t watched_bytes(std::uint32_t dr7, unsigned n) {
  constexpr std::uint32_t kLengths[4] = {1, 2, 8, 4};
  return kLengths[dr7 >> (18 + 4 * n) & 3];
}

bool is_enabled(std::uint32_t dr7, unsigned n) { return (dr7 >> (2 * n) & 3) != 0; }

constexpr std::uint32_t kOnExecution = 0, kOnWrite = 1, kOnPort = 2, kOnReadOrWrite = 3;

constexpr std::uint32_t kDr7GeneralDetect = 1u << 13;

constexpr std::uint32_t kDr6GeneralDetect = 1u << 13;

}  // namespace

void DebugUnit::find_breakpoints() {
  breaks_on_code_ = breaks_on_data_ = breaks_on_ports_ = false;
  for (unsigned n = 0; n < 4; ++n) {
    if (!is_enabled(value(7), n)) continue;
    const std::uint32_t access = watched_access(value(7), n);
    breaks_on_code_ |= access == kOnExecution;
    breaks_on_data_ |= access == kOnWrite || access == kOnReadOrWrite;
    breaks_on_ports_ |= access == kOnPort;
  }
}

/// Whether the bytes of an access and of a breakpoint overlap.
bool DebugUnit::meets(LinearAddr address, std::uint32_t size, LinearAddr watched,
                      std::uint32_t bytes) const {
  if (!cpu_.bits64()) return overlap(address, size, watched, bytes);
  return address.value - watched.value < bytes || watched.value - address.value < size;
}

/// DR6 bits of the breakpoints that an access meets; 0 when none of them is enabled. SDM vol. 3,
/// 17.2.3: once one is, the bits of others whose condition is met are set whether enabled or not.
std::uint32_t DebugUnit::met_breakpoints(std::uint32_t access, LinearAddr address,
                                         std::uint32_t size) const {
  std::uint32_t met = 0;
  bool enabled = false;
  for (unsigned n = 0; n < 4; ++n) {
    const std::uint32_t watched = watched_access(value(7), n);
    const bool wanted = watched == access || (watched == kOnReadOrWrite && access == kOnWrite);
    if (!wanted) continue;
    const std::uint32_t bytes = watched_bytes(value(7), n);
    if (!meets(address, size, LinearAddr{dr_[n]}.begin_of(bytes), bytes)) continue;
    met |= 1u << n;
    enabled |= is_enabled(value(7), n);
  }
  return enabled ? met : 0;
}

/// #DB is raised, and DR6 gets these bits. It keeps what it has, but for B0 to B3 of earlier ones
/// in later processors: "certain debug exceptions may clear bits 0-3" (SDM vol. 3, 17.2.3, since
/// 2008), and x86/debug.c of kvm-unit-tests, which is run on processors with long mode, expects
/// that they do. The Pentium III's manual says that a processor never clears DR6.
void DebugUnit::tell(std::uint32_t bits) {
  constexpr std::uint64_t kBreakpoints = 0xf;
  if (cpu_.traits.has_long_mode) dr_[6] &= ~kBreakpoints;
  dr_[6] |= bits;
}

void DebugUnit::check_code(LinearAddr linear) {
  if (cpu_.resume_flag || cpu_.position.iteration != 0 || in_stack_shadow()) return;
  const std::uint32_t met = met_breakpoints(kOnExecution, linear, 1);
  if (met == 0) return;
  tell(met);
  throw CpuException{kDebug, std::nullopt, 0};
}

void DebugUnit::check_data(const DataAccess& a) {
  pending_ |= met_breakpoints(a.write ? kOnWrite : kOnReadOrWrite, a.linear, a.size);
}

void DebugUnit::check_port(std::uint16_t port, std::uint32_t size) {
  if ((cpu_.engine.cr(4) & kCr4De) == 0) return;
  pending_ |= met_breakpoints(kOnPort, LinearAddr{port}, size);
}

/// Before a debug register is accessed (SDM vol. 3, 17.2.4, "general detect").
void DebugUnit::check_general_detect() {
  if ((dr_[7] & kDr7GeneralDetect) == 0) return;
  dr_[6] |= kDr6GeneralDetect;
  throw CpuException{kDebug, std::nullopt, 0};
}

void DebugUnit::clear_general_detect() { dr_[7] &= ~std::uint64_t{kDr7GeneralDetect}; }

bool DebugUnit::in_stack_shadow() const { return stack_shadow_ == cpu_.position.instruction; }

unsigned DebugUnit::number_of(unsigned encoded) const {
  if (encoded != 4 && encoded != 5) return encoded;
  // SDM vol. 3, 17.2.2: DR4 and DR5 are DR6 and DR7 unless CR4.DE reserves them.
  if ((cpu_.engine.cr(4) & kCr4De) != 0) throw CpuException{6, std::nullopt, 0};
  return encoded + 2;
}

std::uint64_t DebugUnit::read(unsigned encoded) {
  const unsigned number = number_of(encoded);
  check_general_detect();
  return dr_[number];
}

void DebugUnit::write(unsigned encoded, std::uint64_t value) {
  const unsigned number = number_of(encoded);
  check_general_detect();
  // SDM vol. 3, 17.2.3 and 17.2.4: reserved bits read as they are wired.
  if (number == 6) value = (value & 0xe00f) | 0xffff0ff0;
  if (number == 7) value = (value & 0xffff2fff) | 0x400;
  dr_[number] = value;
  find_breakpoints();
}

void DebugUnit::drop_local_breakpoints() {
  constexpr std::uint32_t kLocal = 0x155;
  dr_[7] &= ~std::uint64_t{kLocal};
  find_breakpoints();
}

}  // namespace citcat
