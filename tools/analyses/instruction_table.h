#pragma once
// Counts something for each static instruction, that is, each linear address and its bytes. A
// program that changes its code has several instructions at one address.

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "tools/host/tool.h"

namespace citcat::tools {

struct InstructionKey {
  LinearAddr linear;
  std::uint8_t length = 0;
  std::uint8_t bits = 32;  ///< default size of its code segment, 64 in 64-bit mode
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  auto operator<=>(const InstructionKey&) const = default;

  /// After its last byte; outside 64-bit mode 0 follows the last address of 32 bits.
  LinearAddr behind() const {
    return bits == 64 ? LinearAddr{linear.value + length} : linear.plus32(length);
  }
  static InstructionKey of(const StaticInstruction& instruction);
  void save(ByteWriter& out) const;
  /// Throws FormatError if it is not one.
  static InstructionKey load(ByteReader& in);
  /// Hexadecimal, without blanks.
  std::string bytes_text() const;
  /// In Intel syntax.
  std::string text() const;
  /// Decoded as of a processor with all instructions.
  DecodedInstruction decoded() const;
};

/// The mnemonic in a text in Intel syntax, without prefixes.
std::string mnemonic_of(const std::string& text);

/// Default size of the code segment that an instruction was decoded for, 64 in 64-bit mode.
std::uint8_t segment_bits(const DecodedInstruction& info);

}  // namespace citcat::tools
