#pragma once
// Texts in UTF-16, as Windows programs save them, turned into UTF-8.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace citcat {

/// Decodes a text piece by piece; a piece may end within a character.
class Utf16Decoder {
 public:
  /// A decoder for a text that begins with the mark of UTF-16 (Unicode 15, 23.8), in the byte order
  /// that the mark tells; nothing for any other text.
  static std::optional<Utf16Decoder> for_text(std::span<const std::uint8_t> head);

  /// The next bytes of the text as UTF-8, without its mark. What is no character is U+FFFD.
  std::string decode(std::span<const std::uint8_t> bytes);

 private:
  explicit Utf16Decoder(bool big_endian) : big_endian_(big_endian) {}
  void take_unit(std::uint32_t unit, std::string& out);

  bool big_endian_;
  std::optional<std::uint8_t> half_;  ///< the first byte of a unit
  std::uint32_t high_ = 0;            ///< the first unit of a pair
};

}  // namespace citcat
