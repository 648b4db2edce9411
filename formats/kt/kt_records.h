#pragma once
// The layout of records in the two forms of KT, by the type that follows the first word of each.

#include <cstddef>
#include <cstdint>

#include "formats/kt/kt.h"

namespace citcat {

/// Records with addresses of 32 bits.
struct KtNarrowRecords {
  using Word = std::uint32_t;
  static constexpr bool kNarrow = true;
  /// Bits of the number that says how many bits a difference has.
  static constexpr unsigned kSizeBits = 6;
  static bool is_instruction(std::uint8_t type) { return type < 0x40; }
  static unsigned addresses(std::uint8_t type) { return type >> 4; }
  static bool is_of_64_bit_mode(std::uint8_t /*type*/) { return false; }
  static std::size_t fixed_bytes(std::size_t code) { return kt_fixed_bytes(code); }
  static std::size_t bytes_of_other(bool /*process*/) { return 8; }
};
/// Those of the wide form, whose types tell the mode of the code.
struct KtWideRecords {
  using Word = std::uint64_t;
  static constexpr bool kNarrow = false;
  static constexpr unsigned kSizeBits = 7;
  static bool is_instruction(std::uint8_t type) { return (type & 0xc0) != 0x80; }
  static unsigned addresses(std::uint8_t type) { return type >> 4 & 3; }
  static bool is_of_64_bit_mode(std::uint8_t type) { return (type & 0xc0) == 0; }
  static std::size_t fixed_bytes(std::size_t code) { return kt_wide_fixed_bytes(code); }
  static std::size_t bytes_of_other(bool process) { return process ? 16 : 24; }
};

/// Bytes of a record of that type, which need not be one that the format has.
template <class Form>
std::size_t kt_record_bytes(std::uint8_t type) {
  if (!Form::is_instruction(type)) return Form::bytes_of_other(type == kKtProcess);
  return Form::fixed_bytes(type & 15U) + sizeof(typename Form::Word) * Form::addresses(type);
}

}  // namespace citcat
