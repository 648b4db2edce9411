#pragma once
// How a recorder asks for the registers of the processor that it records.

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "monitor/log/logged_state.h"
#include "monitor/state/control_registers.h"
#include "monitor/state/state_block.h"

namespace citcat::monitor {

/// Registers of the emulated processor, as they are at a callback that asked for them.
class Registers {
 public:
  virtual ~Registers() = default;
  /// A general register, of which there are 8 on a processor of 32 bits. Outside 64-bit mode the
  /// lower half.
  virtual std::uint64_t gpr(unsigned n) = 0;
  virtual std::uint16_t selector(unsigned n) = 0;  ///< encoding order ES CS SS DS FS GS
  /// Right at the first instruction of a block only.
  std::uint64_t ip() {
    if (ip_at_ == nullptr || ++ip_reads_ % kCheckedEvery == 0) return read_ip();
    // Not as many bytes as ip_bytes_ says: a copy of unknown size waits for what it has stored.
    std::uint64_t value = 0;
    std::uint32_t narrow = 0;
    if (ip_bytes_ == sizeof value)
      std::memcpy(&value, ip_at_, sizeof value);
    else
      std::memcpy(&narrow, ip_at_, sizeof narrow), value = narrow;
    return value;
  }
  virtual ControlRegisters control() = 0;
  virtual bool in_virtual8086() = 0;
  /// The whole state, hidden parts too. Slow.
  virtual LoggedState state() = 0;
  /// Memory by its linear address, as the processor reaches it now, without a trace on the bus or
  /// in a TLB. False where there is none.
  virtual bool read_memory(std::uint64_t linear, std::span<std::uint8_t> bytes) = 0;
  /// What a processor with long mode has besides; nullopt of others.
  virtual std::optional<LongModeRegisters> long_mode_registers() { return std::nullopt; }
  /// The mode or a descriptor table has changed: what a selector stood for it may stand for no
  /// more.
  virtual void forget_segments() = 0;

 protected:
  virtual std::uint64_t read_ip() = 0;
  /// Where the emulator keeps it, once that is known; it is compared now and then with what
  /// read_ip() tells.
  const std::uint8_t* ip_at_ = nullptr;
  unsigned ip_bytes_ = 4;

 private:
  static constexpr unsigned kCheckedEvery = 256;
  unsigned ip_reads_ = 0;
};

}  // namespace citcat::monitor
