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
  std::uint32_t eip = 0;  ///< linear address, or offset in CS if the writer wrote offsets
  std::array<std::uint8_t, kKtMaxInstructionBytes> code{};
  std::uint8_t size = 1;           ///< N, 1..15, prefixes included
  std::uint8_t address_count = 0;  ///< E, 0..2
  std::array<std::uint32_t, kKtMaxAddresses> address{};
  // Only for the wide form (docs/formats/kt.md, "Traces of 64 bits"); 0 in the narrow one.
  std::uint32_t eip_high = 0;
  std::array<std::uint32_t, kKtMaxAddresses> address_high{};
  std::uint8_t bits = 0;  ///< 16, 32 or 64: the mode of the code

  /// The whole addresses, with their upper halves.
  std::uint64_t wide_eip() const { return std::uint64_t{eip_high} << 32 | eip; }
  std::uint64_t wide_address(std::size_t i) const {
    return std::uint64_t{address_high[i]} << 32 | address[i];
  }
  void set_wide_eip(std::uint64_t value) {
    eip = static_cast<std::uint32_t>(value);
    eip_high = static_cast<std::uint32_t>(value >> 32);
  }
  void set_wide_address(std::size_t i, std::uint64_t value) {
    address[i] = static_cast<std::uint32_t>(value);
    address_high[i] = static_cast<std::uint32_t>(value >> 32);
  }

  std::span<const std::uint8_t> bytes() const { return {code.data(), size}; }
  bool operator==(const KtInstruction&) const = default;
};

/// One record as read.
struct KtRecord {
  enum class Kind : std::uint8_t { instruction, process, translation };
  Kind kind = Kind::instruction;
  KtInstruction instruction;    ///< for Kind::instruction
  std::uint32_t pid = 0;        ///< for Kind::process
  std::uint32_t frame = 0;      ///< for Kind::translation: page frame number
  std::uint32_t page = 0;       ///< for Kind::translation: virtual address of the page
  std::uint32_t page_high = 0;  ///< its upper half, in the wide form

  std::uint64_t wide_page() const { return std::uint64_t{page_high} << 32 | page; }
  bool operator==(const KtRecord&) const = default;
};

}  // namespace citcat
