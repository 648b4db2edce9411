#pragma once
// A record of a KT trace, as it is read.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace citcat {

inline constexpr std::size_t kKtMaxInstructionBytes = 15;
inline constexpr std::size_t kKtMaxAddresses = 2;

/// An executed instruction, in the format's own terms.
struct KtInstruction {
  std::uint32_t eip = 0;  ///< linear address (or offset, as the writer was told)
  std::array<std::uint8_t, kKtMaxInstructionBytes> code{};
  std::uint8_t size = 1;           ///< N, 1..15, prefixes included
  std::uint8_t address_count = 0;  ///< E, 0..2
  std::array<std::uint32_t, kKtMaxAddresses> address{};

  std::span<const std::uint8_t> bytes() const { return {code.data(), size}; }
  bool operator==(const KtInstruction&) const = default;
};

/// One record as read.
struct KtRecord {
  enum class Kind : std::uint8_t { instruction, process, translation };
  Kind kind = Kind::instruction;
  KtInstruction instruction;  ///< for Kind::instruction
  std::uint32_t pid = 0;      ///< for Kind::process
  std::uint32_t frame = 0;    ///< for Kind::translation: page frame number
  std::uint32_t page = 0;     ///< for Kind::translation: virtual address of the page
  bool operator==(const KtRecord&) const = default;
};

}  // namespace citcat
