#pragma once

#include <cstdint>

namespace citcat {

/// The gate that holds physical address bit 20 at zero, as software of a PC drives it: port 92h
/// bit 1, or the keyboard controller's output port (IBM PS/2 Hardware Interface Technical
/// Reference, "System control port A" and "Keyboard and auxiliary device controller").
class A20Gate {
 public:
  /// The address bit that the gate holds at zero.
  static constexpr std::uint32_t kBit = 1u << 20;

  /// Takes the state of the gate from an address mask, and the width of addresses.
  void load(std::uint32_t address_mask) {
    open_ = (address_mask & kBit) != 0;
    wires_ = address_mask | kBit;
  }

  /// A write of `size` bytes at `port`.
  void port_write(std::uint16_t port, std::uint32_t size, std::uint32_t value) {
    for (std::uint32_t i = 0; i < size; ++i) {
      write_byte(static_cast<std::uint16_t>(port + i), static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }

  bool open() const { return open_; }
  /// What an address is masked with.
  std::uint32_t mask() const { return open_ ? wires_ : wires_ & ~kBit; }

  /// The keyboard controller expects the value of its output port next.
  bool awaits_output_port() const { return awaits_output_port_; }
  void set_awaits_output_port(bool awaits) { awaits_output_port_ = awaits; }

 private:
  void write_byte(std::uint16_t port, std::uint8_t value) {
    constexpr std::uint16_t kControlPortA = 0x92, kKeyboardData = 0x60, kKeyboardCommand = 0x64;
    constexpr std::uint8_t kGateBit = 2;
    constexpr std::uint8_t kWriteOutputPort = 0xd1, kCloseGate = 0xdd, kOpenGate = 0xdf;
    if (port == kControlPortA) {
      open_ = (value & kGateBit) != 0;
    } else if (port == kKeyboardCommand) {
      awaits_output_port_ = value == kWriteOutputPort;
      if (value == kCloseGate) open_ = false;
      if (value == kOpenGate) open_ = true;
    } else if (port == kKeyboardData) {
      if (awaits_output_port_) open_ = (value & kGateBit) != 0;
      awaits_output_port_ = false;
    }
  }

  bool open_ = true;
  std::uint32_t wires_ = 0xffffffff;  ///< the mask while the gate is open
  bool awaits_output_port_ = false;
};

}  // namespace citcat
