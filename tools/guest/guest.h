#pragma once
// Reads the state of the machine at the reported moment, without any effect on the run.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/machine/address.h"
#include "events/machine/address_space.h"

namespace citcat::tools {

/// A seam: tests have guests without a machine.
class Guest {
 public:
  virtual ~Guest() = default;
  /// CR3, which tells processes apart.
  virtual AddressSpaceId address_space() const = 0;
  virtual std::uint64_t gpr(int number) const = 0;  ///< number: Gpr, or 8 to 15
  virtual std::uint64_t ip() const = 0;
  virtual bool in_64_bit_mode() const { return false; }
  /// The privilege level is 3, and this is no virtual-8086 task.
  virtual bool runs_program() const = 0;
  /// As the supervisor sees memory; nullopt where nothing is mapped, or no evidence defines the
  /// byte: the run has not needed it so far.
  virtual std::optional<std::uint8_t> byte(LinearAddr at) const = 0;

  /// Bytes of an address, a pointer or a count: 4, in 64-bit mode 8.
  unsigned word_bytes() const { return in_64_bit_mode() ? 8 : 4; }
  /// `bytes` further on; outside 64-bit mode 0 follows the last address of 32 bits.
  LinearAddr onward(LinearAddr at, std::uint64_t bytes) const {
    return in_64_bit_mode() ? LinearAddr{at.value + bytes}
                            : at.plus32(static_cast<std::uint32_t>(bytes));
  }
  std::optional<std::uint64_t> word(LinearAddr at) const;
  std::optional<std::vector<std::uint8_t>> bytes(LinearAddr at, std::size_t size) const;
  /// Up to a zero byte, which is not part of it, or to `most` bytes.
  std::optional<std::string> text(LinearAddr at, std::size_t most) const;
};

}  // namespace citcat::tools
