#pragma once
// INIT and SIPI, resets, and NMIs after a shutdown among the events of a recording: a processor
// that has run is started again, or goes on. No transaction of one processor alone shows the first.

#include "events/bus_transaction.h"
#include "events/recording.h"

namespace citcat {

/// The kind of such an interrupt; its vector is that of the SIPI. Its number is that in archives.
inline constexpr auto kStartupInterrupt = static_cast<Interrupt::Kind>(5);

/// How a monitor of several processors reports it: as an acknowledge of two bytes, the vector and
/// the delivery mode of a SIPI (Intel SDM vol. 3, 10.6.1).
inline constexpr std::uint8_t kStartupMode = 6;
inline bool is_startup(const BusTransaction& t) {
  return t.op == BusOp::interrupt_acknowledge && t.size == 2 && t.data[1] == kStartupMode;
}

/// The kind of a reset after which the recording goes on. Its vector is what the monitor's record
/// says: a processor was reset that runs or waits, or that a third fault has shut down. What EDX
/// holds then, its signature, crosses no bus: the recording may have it as an answer of CPUID at
/// this place (InternalRead).
inline constexpr auto kResetInterrupt = static_cast<Interrupt::Kind>(6);
inline constexpr std::uint8_t kResetGoesOn = 1, kResetBehindShutdown = 2;
/// In place of the vector of an NMI that ends a shutdown (SDM vol. 3, 6.15, interrupt 8): it comes
/// after the instruction that shut the processor down, which never completes.
inline constexpr std::uint8_t kNmiVector = 2, kNmiBehindShutdown = 0x82;
inline bool is_reset_within(const BusTransaction& t) {
  return t.op == BusOp::reset && t.size == 1 && t.data[0] >= kResetGoesOn;
}

}  // namespace citcat
